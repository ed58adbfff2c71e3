"""Import of blocks: sources, verification, execution and the database transaction.

A block is decoded, its header is verified, and its transactions are executed by `evm`
while tracers observe. The results are compared with the header. One database
transaction writes the block, its transactions and trace records, the changed versions,
code and trie nodes, and the new head. It also publishes the head on the outbox.

I/O overlaps with execution: PostgreSQL reads data for the next block while the current
block is executed, and writes a full batch while the next one is collected.

Versions are stored for the canonical chain only. A side block is stored with its
changes as a diff. A reorganisation exchanges diffs and versions in one transaction.

`writer` extends the chain and moves between branches. Of the two `importers`, the one for
files chooses the head by total difficulty and height. For a followed network,
`FollowingImporter.follow` moves the head: to a block on top of it, to another branch, or
back to an ancestor, but never below the finalized block.
"""
