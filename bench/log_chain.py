"""A chain with a million logs, most of them of one contract that few filters name.

Each block has a transaction that emits a thousand logs. Each tenth block also transfers
tokens to the receiver, and the last block contains nothing but transfers.
"""

from __future__ import annotations

import random
from pathlib import Path

from eth_typing import Address

from abi.encoding import call_data
from bench.token_chain import (
    TOKEN,
    TRANSFER_GAS,
    TokenChain,
    genesis_of,
    holders_of,
    write_chain,
)
from samples.assembler import assemble
from samples.builder import ChainBuilder
from samples.signers import Signer

BLOCKS = 1_000
"""Blocks with logs of the emitter. The block of transfers follows them."""
EMITTED_LOGS = 1_000
"""Logs of the emitting contract in a block."""
HITS = 100
"""Transfers to the receiver."""
FULL_TRANSFERS = 200
"""Transfers of the last block."""

EMITTER = Address(b"\x71" * 20)
_EMITTER_CODE = assemble(
    """
    ; Emits logs with three topics: Emitted(uint256 indexed number, address indexed by).
    ;
    ;   input      the first log's number and the last one's, 32 bytes each

            PUSH 0x20 CALLDATALOAD PUSH 0 CALLDATALOAD          ; [last, number]
    loop:   CALLER DUP2 PUSH32 topic("Emitted(uint256,address)")
            PUSH 0 DUP1 LOG3                                    ; [last, number]
            PUSH 1 ADD DUP2 DUP2 GT ISZERO PUSH @loop JUMPI
            STOP
    """
)
_GAS_OF_LOG = 1_600
_GAS_OF_CALL = 30_000

_HOLDERS = 400


def write_log_chain(folder: Path) -> tuple[TokenChain, Signer]:
    """Build the chain and write its files. Return it, and the receiver."""
    receiver, *others = holders_of(_HOLDERS)
    genesis = genesis_of([receiver, *others])
    genesis["alloc"][f"0x{EMITTER.hex()}"] = {
        "balance": "0x0",
        "code": f"0x{_EMITTER_CODE.hex()}",
    }
    built = ChainBuilder(genesis)
    chance = random.Random(_HOLDERS)

    def transfer(to: Signer) -> None:
        data = call_data("transfer(address,uint256)", to.address, 1)
        built.send(chance.choice(others), Address(TOKEN), data, gas=TRANSFER_GAS)

    for number in range(BLOCKS):
        first = number * EMITTED_LOGS
        last = first + EMITTED_LOGS - 1
        built.send(
            chance.choice(others),
            EMITTER,
            first.to_bytes(32) + last.to_bytes(32),
            gas=EMITTED_LOGS * _GAS_OF_LOG + _GAS_OF_CALL,
        )
        if number % (BLOCKS // HITS) == 0:
            transfer(receiver)
        built.block()
    for _ in range(FULL_TRANSFERS):
        transfer(chance.choice(others))
    built.block()
    return write_chain(folder, genesis, built), receiver
