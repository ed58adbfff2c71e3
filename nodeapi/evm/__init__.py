"""Execution: what a block is, what its fork's rules are, what it does to the state.

py-evm runs the message calls; it is met in this package only.
"""
