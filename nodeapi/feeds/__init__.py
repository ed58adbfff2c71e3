"""Events of networks, which a process reads once for all of its subscriptions.

`blocks` has new heads and logs, `pending` new pending transactions, and `syncing` whether a
network is behind its upstreams.
"""
