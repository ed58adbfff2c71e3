"""Requests to upstreams: calls, subscriptions, and blocks as verified RLP.

`client` calls an upstream over HTTP (`http`) or WebSocket (`websocket`), and `address`
keeps its URL and headers out of texts. `source` reads blocks through a client, and
`blocks` rebuilds them from JSON and verifies them. `pool` keeps the clients of a
process. `errors` has all exceptions.

No module of this package uses Django.
"""
