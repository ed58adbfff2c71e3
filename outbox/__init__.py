"""The transactional outbox, through which processes learn of committed changes.

- `streams`: the names of streams, such as the blocks of one network.
- `append`: adds an entry to a stream, in the transaction of the change.
- `models`: the tables. Entries get their numbers at the commit: per stream without gaps
  and in the order of the commits.
- `publisher`: sends "stream S has number N" to the channel layer, after the commit.
- `receiver`: receives these messages, in one channel per process.
- `reading`, `subscriber`: read the new entries from the database and call subscribers.

The database is the source of truth. Messages may be lost, repeated, delayed or
reordered: a process also polls its streams every second.
"""
