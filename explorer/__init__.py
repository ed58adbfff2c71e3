"""Pages under `/explore/` that show blocks, reorganisations and traces.

`latest` reads what a network's page shows; `pending` reads pending transactions from
upstreams; `calls`, `flame` and `changes` arrange the trace records that `rows` reads;
`logs`, `transfers` and `arguments` show what `abi` decodes, with the uploaded definitions
of `abis`; `tokens` reads the symbols and decimals of tokens; `accounts` reads the page of
an address; `search` finds numbers, hashes and prefixes; `access` decides who can see a
page; `views` and `abi_views` are the pages. They are Django views in
threads and execute nothing.

A page shows the first 500 calls, logs and changes and at most 1500 bars of the flame graph.
It decompresses no record beyond 16 MiB, and at most two at a time. The content policy
allows our style sheet and our script that copies addresses, and no requests, because the
pages show data that contract authors chose. The page of a network, which shows none, has a
script that keeps it up to date.
"""
