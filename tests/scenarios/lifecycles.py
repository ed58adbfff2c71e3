"""Creation and destruction of contracts, and empty accounts."""

from __future__ import annotations

from random import Random

from eth_typing import Address

from abi.encoding import call_data, word
from samples.assembler import assemble, init_code
from samples.builder import MINER
from samples.contracts import contract
from samples.schedules import from_genesis
from tests.scenarios.base import (
    ANN,
    BEN,
    CYD,
    FACTORY,
    FAULTS,
    FRESH,
    Chain,
    begin,
    child_of,
    create,
    destroy,
    slots,
)


def recreate_in_one_block(fork: str = "istanbul") -> Chain:
    """Create, write, destroy and re-create contracts at one address in one block.

    At the end of the block, some contracts exist and some are destroyed. One receives
    ether after its destruction.
    """
    genesis, chain = begin(from_genesis(fork))
    old = create(chain, 0, value=5)
    chain.send(BEN, old)
    chain.block()
    for salt in range(4):
        if salt:
            create(chain, salt, value=salt)
        child = child_of(salt)
        for _ in range(salt + 1):
            chain.send(BEN, child)
        destroy(chain, child, FRESH[0])
        if salt % 2 == 0:
            create(chain, salt, value=9)
            chain.send(BEN, child)
    chain.send(BEN, child_of(3), value=77)
    chain.block()
    for salt in range(4):
        destroy(chain, child_of(salt), FRESH[1])
    data = call_data("createAndDestroy(uint256,address)", 8, FRESH[2])
    chain.send(ANN, FACTORY, data, value=3)
    chain.block()
    chain.block()
    return genesis, chain.blocks


def recreate_across_blocks(fork: str = "istanbul") -> Chain:
    """Destroy contracts and re-create them in later blocks.

    Their storage is zero in between.
    """
    genesis, chain = begin(from_genesis(fork))
    child = child_of(1)
    for round_ in range(3):
        create(chain, 1, value=round_)
        chain.block()
        chain.send(BEN, child, value=1)
        chain.send(BEN, child)
        chain.block()
        destroy(chain, child, CYD.address)
        chain.block()
        chain.send(BEN, child, value=round_ % 2)
        chain.block()
    create(chain, 1)
    chain.block()
    return genesis, chain.blocks


def empty_accounts() -> Chain:
    """Existing empty accounts, removed by a touch from Spurious Dragon on."""
    genesis, chain = begin(
        {"homestead": 3, "tangerine_whistle": 5, "spurious_dragon": 6, "byzantium": 9},
        alloc={
            f"0x{FRESH[14].hex()}": {"balance": "0x0"},
            f"0x{FRESH[15].hex()}": {"balance": "0x0"},
        },
    )
    for address in FRESH[:8]:
        chain.send(BEN, address)
    chain.send(BEN, Address(bytes(19) + b"\x03"))
    chain.block(coinbase=FRESH[8])
    pay = "PUSH 0 DUP1 DUP1 DUP1 DUP1 PUSH20 0x{} PUSH 50000 CALL"
    inherit = "PUSH20 0x{} SELFDESTRUCT"
    caller = chain.deploy(BEN, init_code(assemble(pay.format(FRESH[9].hex()))))
    chain.deploy(BEN, assemble(inherit.format(FRESH[10].hex())))
    chain.send(BEN, caller)
    chain.block()
    for _ in range(3):
        chain.send(ANN, FRESH[0], gas_price=0)
        chain.block()
    chain.send(BEN, FRESH[0])
    chain.send(BEN, FRESH[1], value=1)
    chain.send(BEN, FRESH[14])
    chain.send(BEN, FRESH[11])
    chain.block(coinbase=FRESH[2])
    chain.send(BEN, caller)
    chain.deploy(BEN, assemble(inherit.format(FRESH[3].hex())))
    # A touch that is undone does not count.
    touch = pay.format(FRESH[4].hex())
    chain.deploy(BEN, assemble(f"{touch} INVALID"), gas=200_000)
    chain.send(BEN, Address(bytes(19) + b"\x03"))
    chain.block()
    chain.block()
    chain.send(BEN, FRESH[5], data=b"data")
    chain.block()
    return genesis, chain.blocks


def selfdestruct_heirs(fork: str = "istanbul") -> Chain:
    """Self-destructs with special beneficiaries.

    The beneficiary is the contract itself, a precompiled contract, a miner or a new
    account.
    """
    genesis, chain = begin(from_genesis(fork))
    code = contract("child").init_code()
    children = [chain.deploy(ANN, code, value=10 + i) for i in range(6)]
    empty_child = chain.deploy(ANN, code)
    chain.block()
    beneficiaries = [
        children[0],
        Address(bytes(19) + b"\x01"),
        MINER,
        FRESH[0],
        children[0],
        children[3],
    ]
    for child, beneficiary in zip(children, beneficiaries, strict=True):
        chain.send(BEN, child, word(beneficiary))
    chain.send(BEN, empty_child, word(FRESH[1]))
    chain.block()
    for child in children:
        chain.send(BEN, child, value=1)
    chain.block()
    # Created and destroyed in one transaction, with itself or another beneficiary.
    chain.deploy(ANN, assemble("ADDRESS SELFDESTRUCT"), value=8)
    chain.deploy(ANN, assemble("PUSH 7 PUSH 7 SSTORE CALLER SELFDESTRUCT"), value=9)
    data = call_data("createAndDestroy(uint256,address)", 1, FRESH[2])
    chain.send(ANN, FACTORY, data, value=3)
    chain.send(ANN, FACTORY, data, value=4)
    chain.block()
    return genesis, chain.blocks


def failed_creations(fork: str = "istanbul") -> Chain:
    """Creations that fail by a collision, a revert, too little gas or too much code."""
    taken, funded = child_of(1), child_of(2)
    genesis, chain = begin(
        from_genesis(fork),
        alloc={
            f"0x{taken.hex()}": {"balance": "0x0", "nonce": "0x1"},
            f"0x{funded.hex()}": {"balance": "0x64"},
        },
    )
    for salt in (1, 2):
        data = call_data("create2(uint256)", salt)
        chain.send(ANN, FACTORY, data, value=1, gas=3_000_000)
    chain.send(ANN, FACTORY, call_data("createTwice(uint256)", 3), gas=3_000_000)
    chain.send(ANN, FACTORY, call_data("createFailing()"))
    chain.block()
    chain.deploy(BEN, assemble("PUSH 24577 PUSH 0 RETURN"), gas=6_000_000)
    chain.deploy(BEN, contract("slots").init_code(), gas=85_000, value=1)
    chain.deploy(BEN, b"", value=2)
    chain.deploy(BEN, b"\xfe", gas=60_000)
    chain.block()
    return genesis, chain.blocks


def random_activity(fork: str = "istanbul", seed: int = 1, length: int = 25) -> Chain:
    """Pseudorandom creations, destructions and writes, determined by the seed."""
    genesis, chain = begin(from_genesis(fork))
    random = Random(seed)
    for _ in range(length):
        for _ in range(random.randrange(9)):
            salt = random.randrange(4)
            child = child_of(salt)
            first, second = random.randrange(12), random.randrange(4)
            action = random.randrange(7)
            if action == 0:
                data = call_data("create2(uint256)", salt)
                chain.send(ANN, FACTORY, data, value=second, gas=500_000)
            elif action == 1:
                destroy(chain, child, random.choice((child, FRESH[salt], FACTORY)))
            elif action == 2:
                chain.send(BEN, child, value=second)
            elif action == 3:
                slots(chain, random.choice(("fill", "clear")), first, second)
            elif action == 4:
                slots(chain, random.choice(("set", "restore")), first, second)
            elif action == 5:
                chain.send(BEN, FAULTS, call_data("nested()"))
            else:
                data = call_data("createAndDestroy(uint256,address)", salt, child)
                chain.send(ANN, FACTORY, data, value=second, gas=500_000)
        chain.block()
    return genesis, chain.blocks
