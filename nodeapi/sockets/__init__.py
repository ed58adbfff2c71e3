"""WebSockets: what all sockets share, and the node's sockets at `/ws/v3`.

- `consumer`: the base of all consumers. `handshake` rejects handshakes.
- `wire` and `writer`: write frames to a client, within limits for unread bytes.
- `subscription`: one eth_subscribe, from its response until it ends.
- `close_codes`: why a socket is closed.
- `limits`, `peer`, `hub`: the node's sockets, behind the consumer of `nodeapi.consumers`.

Frames are written at once, in the order of the decisions that they report. No code in
this package waits for a client; a client that does not read is disconnected.
"""
