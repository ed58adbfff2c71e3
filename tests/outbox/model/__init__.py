"""A model of the outbox's users: processes that write and follow streams under faults.

- `settings`, `layer`: a channel layer that loses, repeats, delays and reorders messages.
- `facts`: what they write.
- `member`: one process. It writes, follows all streams, and logs both.
- `cluster`: PostgreSQL, Redis and the processes.
- `faults`: kills and interrupts them.
- `history`: checks the logs.
"""
