"""The wallet's WebSockets, behind the consumers of `wallets.consumers`.

- `handshake`: reads handshakes and rejects them. `wire`: writes frames to a client.
- `peer`: one socket of a dapp as a JSON-RPC 2.0 peer. `frames` decodes and encodes its
  messages, `writer` sends them, `limits` and `close_codes` hold its bounds.
- `room`: all sockets of one dapp in this process, with the dapp's current session.
- `subscriptions`: new heads and logs.
- `hub`: the rooms, feeds and admissions that the sockets of a process share.
- `inbox`: the users' open pages, which reload their lists.

Frames are written at once, in the order of the decisions that they report. No code in
this package waits for a client; a client that does not read is disconnected.
"""
