"""What the wallet reads from the chain for its pages, with the methods of this service.

`simulation` has a transaction executed by eth_simulateV1 in a worker process, `movements`
decodes its logs, and `contracts` reads what contracts say about themselves. `balances`
reads accounts. `page_node` lets the pages, which run in threads, wait for these answers for
a limited time; without them the pages show what a request says.
"""
