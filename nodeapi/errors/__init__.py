"""Errors of Ethereum's methods and of the endpoint, each with its cause and its remedy.

The modules: `blocks` (unknown blocks and states), `execution`
(executions on demand), `traces` (blocks and transactions
that can't be traced), `arguments` (arguments that are too large or out of range),
`logs` (searches and filters), `relay` (submitted and pending transactions), `access`
(entitlements and URLs), `sockets` (calls and subscriptions of WebSockets).
"""
