"""A chain with transactions that are expensive to trace."""

from __future__ import annotations

from evm.blocks import Block
from samples.builder import ChainBuilder
from samples.signers import Signer

ALICE = Signer("alice")
LOOP, DEEP, WIDE, GREETING = (bytes([0xC0 + n]) * 20 for n in range(4))
BLOCK_GAS = 2**25

CODES = {
    LOOP: "5b600056",  # runs until the gas is used up
    DEEP: "6000 80808080 30 6064 5a 03 f1",  # calls itself up to the depth limit
    WIDE: "5b 5a 612000 52 6000 56",  # memory of 8 KiB, in each entry
    GREETING: "602a60005260206000f3",
}
"""Before Tangerine Whistle, a call can get all gas, so that DEEP reaches depth 1024."""


def genesis(fork_at_zero: dict[str, int] | None = None) -> dict[str, object]:
    """Return a genesis with the contracts."""
    alloc: dict[str, object] = {ALICE.address.hex(): {"balance": hex(10**24)}}
    for address, code in CODES.items():
        plain = code.replace(" ", "")
        alloc[address.hex()] = {"balance": "0x0", "code": "0x" + plain}
    return {
        "config": {"chainId": 1337, **(fork_at_zero or {"homesteadBlock": 0})},
        "difficulty": "0x20000",
        "gasLimit": hex(BLOCK_GAS),
        "alloc": alloc,
    }


def blocks() -> list[Block]:
    """Return the blocks: one for each contract, in the order of their addresses."""
    chain = ChainBuilder(genesis())
    for contract, gas in ((LOOP, 8_000_000), (DEEP, 8_000_000), (WIDE, 60_000)):
        chain.send(ALICE, contract, gas=gas)
        chain.block()
    for _ in range(3):
        chain.send(ALICE, GREETING)
    chain.block()
    return chain.blocks
