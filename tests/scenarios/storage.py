"""Storage that is written, restored, reverted and cleared."""

from __future__ import annotations

from abi.encoding import call_data
from samples.assembler import assemble
from samples.schedules import from_genesis
from tests.scenarios.base import BEN, FAULTS, Chain, begin, slots


def nested_reverts(fork: str = "byzantium") -> Chain:
    """Writes that are reverted in nested call frames."""
    genesis, chain = begin(from_genesis(fork))
    for name in ("nested", "writeAndRevert", "staticWrite", "write", "nested"):
        chain.send(BEN, FAULTS, call_data(f"{name}()"))
    chain.block()
    # A creation that writes, creates, and reverts leaves nothing but a nonce.
    chain.deploy(
        BEN,
        assemble(
            "PUSH 1 PUSH 1 SSTORE PUSH 0 PUSH 0 PUSH 0 CREATE PUSH 2 SSTORE"
            " PUSH 0 DUP1 REVERT"
        ),
        value=4,
    )
    chain.deploy(BEN, assemble("PUSH 1 PUSH 1 SSTORE INVALID"), value=4)
    chain.block()
    return genesis, chain.blocks


def write_then_restore(fork: str = "istanbul") -> Chain:
    """Slots that are written and restored, within a transaction and within a block."""
    genesis, chain = begin(from_genesis(fork))
    slots(chain, "fill", 0, 8)
    chain.block()
    slots(chain, "restore", 0, 99)
    slots(chain, "restore", 100, 99)
    slots(chain, "set", 1, 50)
    slots(chain, "set", 1, 2)
    slots(chain, "set", 101, 5)
    slots(chain, "set", 101, 0)
    chain.block()
    slots(chain, "set", 2, 0)
    slots(chain, "set", 2, 3)
    chain.block()
    return genesis, chain.blocks


def zeroing(fork: str = "istanbul") -> Chain:
    """Storage that is cleared down to the last slot, and filled again."""
    genesis, chain = begin(from_genesis(fork))
    slots(chain, "fill", 0, 40)
    chain.block()
    slots(chain, "clear", 10, 20)
    chain.block()
    slots(chain, "clear", 0, 40)
    chain.block()
    slots(chain, "fill", 39, 2)
    chain.block()
    slots(chain, "clear", 39, 1)
    slots(chain, "clear", 40, 1)
    chain.block()
    return genesis, chain.blocks
