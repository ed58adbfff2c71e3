"""Our execution against an independent oracle, instruction by instruction.

    make differential             # the sample chain, the scenarios, the recorded chain
    make differential ARGS=sample

The oracle is `ethereum-execution`, the executable specification of Ethereum (EELS). It has
a separate virtual environment, `.venv-eels`, because its dependencies conflict with ours. It
runs in a separate process (`oracle.py`), whose input is only the genesis state and the
blocks. The oracle executes the blocks, compares receipts, gas and state root with each
header, and records every instruction. The same blocks are then executed here as for a trace.
Every instruction is compared: position, opcode, remaining gas, cost, depth, refund counter,
stack, memory, return data, and whether it failed.

This is a tool for developers and not part of the tests, because it takes minutes.
"""
