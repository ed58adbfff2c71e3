"""Filters that clients poll: eth_newFilter, eth_getFilterChanges and their relatives.

A filter's state is in Redis, so that any process can answer a poll. It consists of the
filter's criteria, and of the number and the hash of the last block that was read. A
poll reads the changes in the database since that block. After a reorganisation,
the block leads to the fork point, and the logs of the blocks in between are reported as
removed.

- `state`: the state, and its JSON.
- `storage`: the states in Redis, which deletes them 5 minutes after the last poll.
- `changes`: the blocks and logs since a block.
- `merging`: several arrays of logs in one.
- `pending`: new pending transactions, which a filter at an upstream collects.
- `filters`: creating, polling and removing filters.
"""
