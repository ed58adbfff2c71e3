"""Execution of blocks: their format, the rules of forks, and the changes of the state.

py-evm executes the message calls. Only this package uses it.
"""
