"""The follower: keeps one network at the head of its upstreams.

- `health`, `choice`: the health of an upstream, and the choice of the forkchoice, both
  without I/O.
- `watcher`, `pool`: poll each upstream, in the event loop of a separate thread. `fork_stop`
  finds the last block before a fork that is not supported.
- `line`, `importing`: find, download and import the blocks between our chain and the chosen
  head.
- `follower`: chooses the head, makes it canonical, and ignores upstreams at fault.
- `status`: writes progress and problems to the database.
- `run`: runs the follower of one network until it is stopped.

A notification of a new head only wakes a watcher, which then asks its upstream for
`latest`, `safe` and `finalized`. Execution proves that a block is valid, but not that it
is canonical. A block becomes the head if `Network.agree` upstreams agree on it.
"""
