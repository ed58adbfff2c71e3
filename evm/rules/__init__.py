"""The rules of each fork: `evm.rules.forks` has one table of differences for each.

A fork's opcodes, prices, precompiled contracts, limits, and rules of transactions and
headers stand there and nowhere else. The interpreter and the tracers read them from the
fork.
"""
