"""Values of a sparse state: fetched from upstreams, proved, and stored.

A network that starts at a checkpoint knows the checkpoint's block, and of its state only
what was proved. `fetch` proves values with what upstreams send, and `values` stores them
as rows of the checkpoint's block. `keys` finds keys that lead to nodes of a trie.

`reads` does both for the customers of a web process, who share fetches and take turns;
`writer` is its connection. `unknown` has the errors of tasks that have met unknown values.
"""
