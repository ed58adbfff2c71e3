"""Transactions that are in no block: the local pool.

- `rules`: the rules that depend on the sender's account and on the pool, with geth's texts.
- `alive`: SQL for the rows of the local pool that are not outdated.
- `adding`: writes a transaction to the local pool, and keeps the pool's limits.
- `writer`: the connection and the thread of a process for these writes.
- `local`: the local pool of networks without upstreams. No block includes them.
- `submitting`: the same for threads that have no event loop.
- `answers`: the JSON of the methods `txpool_*`.
"""
