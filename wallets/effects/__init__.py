"""Reads from the chain for the pages of the wallet, with the methods of this service.

`simulation` has a transaction executed by eth_simulateV1 in a worker process, `movements`
decodes its logs, and `contracts` reads names and hashes from contracts. `balances`
reads accounts. `page_node` lets the pages, which run in threads, wait for these answers for
a limited time; without them the pages show what a request says.
"""
