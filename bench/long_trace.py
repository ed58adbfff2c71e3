"""A chain with one transaction whose trace is ten megabytes long."""

from __future__ import annotations

from pathlib import Path

from bench.token_chain import genesis_of, import_chain, write_chain
from samples.assembler import assemble
from samples.builder import ChainBuilder
from samples.signers import Signer

LONG_SLUG = "bench-long-trace"
CALLS = 160
"""Calls of the identity contract, whose output is as long as its input."""
CALL_BYTES = 2**14

_ECHO = b"\x71" * 20
_CODE = assemble(
    f"""
    PUSH 32 PUSH 32 PUSH {CALL_BYTES} CALLDATACOPY   ; []   something to send
    PUSH 0 CALLDATALOAD                              ; [calls left]
    next:
    PUSH 0 PUSH 0 PUSH {CALL_BYTES} PUSH 0           ; [calls left, out, in]
    PUSH 4 GAS STATICCALL POP                        ; [calls left]
    PUSH 1 SWAP1 SUB DUP1 PUSH @next JUMPI           ; [calls left - 1]
    STOP
    """
)


def add_long_trace(folder: Path) -> str:
    """Build and import the chain; return the hash of its block in hex."""
    caller = Signer("caller")
    genesis = genesis_of([caller])
    genesis["alloc"][f"0x{_ECHO.hex()}"] = {
        "balance": "0x0",
        "code": f"0x{_CODE.hex()}",
    }
    chain = ChainBuilder(genesis)
    chain.send(caller, _ECHO, CALLS.to_bytes(32, "big"), gas=2_000_000)
    block = chain.block()
    import_chain(write_chain(folder, genesis, chain), LONG_SLUG)
    return f"0x{block.header.hash.hex()}"
