"""`/ws/dapp`: what a dapp's socket does, over all processes that serve; and `/ws/ui`.

- `application`: a connection from its handshake to its end, an ASGI application.
- `peer`: one socket as a JSON-RPC 2.0 peer; `frames` reads and writes its messages,
  `outbox` is its way out, `limits` what it may do.
- `room`: all sockets of a dapp in this process, and what holds for them.
- `subscriptions`, `feed`, `log_filter`: new heads and logs.
- `hub`: what the sockets of a process share.
- `inbox`: `/ws/ui`, on which the user's open inbox is told to look.

Nothing in here waits for a client: what is sent is written at once, in the order in which
it is decided, and who does not read is disconnected.
"""
