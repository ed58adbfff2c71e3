"""Errors that the node answers calls with, each with its cause and its remedy.

`blocks` has unknown blocks and states, `traces` what can't be traced, `arguments` what is
too much or out of range, `logs` searches and filters, `relay` what concerns submitted and
pending transactions, `access` entitlements and URLs, `sockets` WebSockets.
"""
