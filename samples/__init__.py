"""The sample chain that `make run` serves, and the tools that build test chains.

A chain is built in memory by the EVM that imports it later: `builder` assembles blocks
from transactions, `assembler` turns the `contracts/*.asm` sources into byte code.
"""
