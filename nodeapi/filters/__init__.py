"""Filters that clients poll: eth_newFilter, eth_getFilterChanges and their relatives.

A filter's state is in Redis, so that any process can answer a poll. It consists of the
filter's criteria, and of the number and the hash of the last block that was read. A
poll reads the changes in the database since that block. After a reorganisation,
the block leads to the fork point, and the logs of the blocks in between are reported as
removed.

- `storage`: the states as JSON in Redis, which deletes them 5 minutes after the last poll.
- `changes`: the blocks and logs since a block.
- `pending`: new pending transactions, which a filter at an upstream collects.
- `filters`: creating, polling and removing filters, and arrays of logs merged into one.
"""
