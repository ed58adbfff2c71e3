"""Our execution against an independent oracle, instruction by instruction.

    make differential             # the sample chain, the scenarios, the recorded chain
    make differential ARGS=sample

The oracle is `ethereum-execution`, the executable specification of Ethereum (EELS). It
lives in a virtual environment of its own, `.venv-eels`, because its dependencies and
ours don't agree, and runs in a process of its own (`oracle.py`), which is told nothing
but the genesis state and the blocks. It executes them, holds receipts, gas and state
root against each header, and writes down every instruction. Then the same blocks are
executed here as for a trace, and every instruction is compared: position, opcode, gas
left, cost, depth, refund counter, stack, memory and return data, and which one failed.

For developers alone, not part of the tests: it takes minutes.
"""
