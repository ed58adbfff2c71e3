"""Changes by the protocol: delegations, withdrawals, system contracts, branches."""

from __future__ import annotations

from typing import Any

from eth_typing import Address

from abi.encoding import call_data, word
from evm.blocks import Block, Withdrawal
from evm.execution import BEACON_ROOTS_ADDRESS, BEACON_ROOTS_RING
from evm.requests import (
    CONSOLIDATION_REQUEST_ADDRESS,
    WITHDRAWAL_REQUEST_ADDRESS,
)
from evm.rules.dao import DAO_DRAINED_ACCOUNTS
from samples.builder import ChainBuilder
from samples.schedules import from_genesis
from samples.signers import Signer
from tests.scenarios.base import (
    ANN,
    BEN,
    CHAIN_ID,
    CYD,
    ETHER,
    FACTORY,
    FRESH,
    SLOTS,
    WALLET,
    Chain,
    begin,
    child_of,
    create,
    destroy,
    slots,
)


def delegations(fork: str = "prague") -> Chain:
    """Delegations set, used, changed, cleared and invalid, within and across blocks."""
    genesis, chain = begin(from_genesis(fork))
    dot = Signer("dot")
    pay = word(FRESH[0]) + word(5) + word(FRESH[1]) + word(0)
    chain.send(BEN, dot.address, authorization_list=[chain.authorize(dot, WALLET)])
    chain.block()
    chain.send(BEN, dot.address, pay, value=100)
    own = chain.authorize(CYD, SLOTS, ahead=1)
    fill = call_data("fill(uint256,uint256)", 0, 3)
    chain.send(CYD, CYD.address, fill, authorization_list=[own])
    chain.block()
    zero_address = Address(bytes(20))
    twice = [chain.authorize(dot, SLOTS), chain.authorize(dot, FACTORY, ahead=1)]
    chain.send(BEN, dot.address, call_data("create()"), authorization_list=twice)
    chain.send(BEN, dot.address, call_data("create2(uint256)", 5), value=1)
    chain.block()
    void = [
        dot.authorize(CHAIN_ID + 1, WALLET, chain.next_nonce(dot.address)),
        dot.authorize(CHAIN_ID, WALLET, 12_345),
        Signer("eve").authorize(0, WALLET, 1),
    ]
    chain.send(BEN, BEN.address, authorization_list=void)
    chain.send(
        BEN,
        BEN.address,
        authorization_list=[Signer("eve").authorize(0, zero_address, 0)],
    )
    chain.block()
    clear = [chain.authorize(dot, zero_address), chain.authorize(CYD, zero_address)]
    chain.send(BEN, BEN.address, authorization_list=clear)
    chain.send(BEN, dot.address, pay)
    chain.send(CYD, FRESH[2], value=1)
    chain.block()
    circle = [chain.authorize(dot, CYD.address), chain.authorize(CYD, dot.address)]
    chain.send(BEN, dot.address, authorization_list=circle)
    chain.block()
    return genesis, chain.blocks


def withdrawals(fork: str = "shanghai") -> Chain:
    """Withdrawals to existing, new, empty and destroyed accounts; some of 0 gwei."""
    genesis, chain = begin(
        from_genesis(fork), {f"0x{FRESH[15].hex()}": {"balance": "0x0"}}
    )
    child = create(chain, 1)
    chain.block(
        withdrawals=[
            Withdrawal(0, 1, ANN.address, 1),
            Withdrawal(1, 1, FRESH[0], 2),
            Withdrawal(2, 2, FRESH[1], 0),
            Withdrawal(3, 2, FRESH[0], 3),
        ]
    )
    destroy(chain, child, FRESH[2])
    chain.block(withdrawals=[Withdrawal(4, 3, child, 7)])
    chain.block(withdrawals=[Withdrawal(5, 3, FRESH[1], 0), Withdrawal(6, 3, SLOTS, 1)])
    chain.block()
    return genesis, chain.blocks


def system_contracts(fork: str = "prague") -> Chain:
    """Ring buffers that wrap around, and queues that fill and drain over blocks."""
    genesis, chain = begin(from_genesis(fork))
    key = bytes(range(48))
    for i in range(20):
        data = key + i.to_bytes(8, "big")
        chain.send(BEN, WITHDRAWAL_REQUEST_ADDRESS, data, value=10**6)
    for _ in range(5):
        data = key + bytes(48)
        chain.send(CYD, CONSOLIDATION_REQUEST_ADDRESS, data, value=10**6)
    chain.block()
    for _ in range(4):
        start = chain.head.timestamp
        chain.send(ANN, BEACON_ROOTS_ADDRESS, word(start))
        chain.block(timestamp=start + BEACON_ROOTS_RING)
    chain.send(BEN, WITHDRAWAL_REQUEST_ADDRESS, key + bytes(8), value=10**6)
    chain.block()
    chain.block()
    return genesis, chain.blocks


def dao_fork() -> Chain:
    """The block that moves the DAO's ether."""
    drained = {
        f"0x{address.hex()}": {"balance": hex((i + 1) * ETHER)}
        for i, address in enumerate(DAO_DRAINED_ACCOUNTS[:3])
    }
    genesis, _ = begin({"homestead": 1}, drained)
    genesis["config"] |= {"daoForkBlock": 3, "daoForkSupport": True}
    chain = ChainBuilder(genesis)
    for _ in range(2):
        chain.send(ANN, BEN.address, value=1)
        chain.block()
    for _ in range(3):
        chain.send(ANN, BEN.address, value=1)
        chain.block(extra_data=b"dao-hard-fork")
    return genesis, chain.blocks


def branches(
    fork: str = "istanbul", length: int = 4
) -> tuple[dict[str, Any], list[Block], list[Block], list[Block]]:
    """Return a genesis, a trunk, and two branches that continue from its last block.

    The first branch is one block longer. Both branches write and clear slots, and
    create and destroy contracts, in the same accounts. One branch destroys contracts of
    the trunk.
    """
    genesis, left = begin(from_genesis(fork))
    create(left, 0, value=3)
    slots(left, "fill", 0, 6)
    left.block()
    left.send(BEN, child_of(0))
    left.block()
    trunk, right = list(left.blocks), left.fork()
    for i in range(length + 1):
        slots(left, "set", i, 100 + i)
        left.send(BEN, FRESH[i % 3], value=1)
        if i == 1:
            destroy(left, child_of(0), FRESH[9])
        if i == 2:
            create(left, 0)
            create(left, 1)
        left.block(extra_data=b"left")
    for i in range(length):
        slots(right, "clear", i, 2)
        right.send(CYD, FRESH[3 + i % 3], value=1)
        create(right, 5 + i)
        if i == 0:
            right.send(BEN, child_of(0))
        if i == length - 1:
            destroy(right, child_of(0), FRESH[10])
        right.block(extra_data=b"right")
    return genesis, trunk, left.blocks[len(trunk) :], right.blocks[len(trunk) :]
