"""WebSockets: what all sockets share, and the node's sockets at `/ws/v3`.

- `consumer`: the base of all consumers. `handshake` rejects handshakes.
- `subscription`: one eth_subscribe, from its response until it ends.
- `limits`, `peer`, `hub`: the node's sockets, behind the consumer of `nodeapi.consumers`.

Frames are written at once (`nodeapi.frames`), in the order of the decisions that they report. No code in
this package waits for a client; a client that does not read is disconnected.
"""
