"""Requests to upstreams: calls, subscriptions, and blocks as verified RLP.

`client` calls an upstream over HTTP (`http`) or WebSocket (`websocket`), and `address`
keeps its URL and headers out of texts. `source` reads blocks through a client, and
`block_rlp` rebuilds them from JSON and verifies them. `pool` keeps the clients of a
process. `errors` has all exceptions.

What an upstream sends of a state is not trusted: `state` reads nodes and codes, `hints`
the names of accounts and slots, and `receipts` verifies the receipts of a block.

No module of this package uses Django.
"""
