"""The maximum size of the EVM's stack, for modules that must not import py-evm."""

STACK_LIMIT = 1024
"""Words. Source: Yellow Paper, 9.1."""
