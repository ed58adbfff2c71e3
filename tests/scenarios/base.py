"""Accounts, contracts and transactions that all scenarios share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from eth_typing import Address

from abi.encoding import call_data
from evm.blocks import Block
from samples.builder import ChainBuilder
from samples.contracts import contract
from samples.schedules import make_genesis
from samples.signers import Signer, create2_address

Chain: TypeAlias = tuple[dict[str, Any], list[Block]]
"""A genesis.json and the blocks after it."""

CHAIN_ID = 7357
ETHER = 10**18
ANN, BEN, CYD = (Signer(name) for name in ("ann", "ben", "cyd"))
FRESH = tuple(Address(bytes([0xF0 + i]) * 20) for i in range(16))
"""Addresses of accounts that do not exist at first."""

FACTORY = Address(b"\xfa" * 20)
SLOTS = Address(b"\x51" * 20)
FAULTS = Address(b"\xfb" * 20)
WALLET = Address(b"\xaa" * 20)


def begin(
    first_blocks: Mapping[str, int], alloc: Mapping[str, Any] | None = None
) -> tuple[dict[str, Any], ChainBuilder]:
    """Return a genesis with three funded accounts and four contracts, and a builder."""
    entries: dict[str, Any] = {
        f"0x{signer.address.hex()}": {"balance": hex(1000 * ETHER)}
        for signer in (ANN, BEN, CYD)
    }
    for address, name in (
        (FACTORY, "factory"),
        (SLOTS, "slots"),
        (FAULTS, "faults"),
        (WALLET, "wallet"),
    ):
        code = contract(name).runtime
        entries[f"0x{address.hex()}"] = {
            "balance": "0x0",
            "nonce": "0x1",
            "code": f"0x{code.hex()}",
        }
    genesis = make_genesis(
        chain_id=CHAIN_ID,
        first_blocks=first_blocks,
        alloc={**entries, **(alloc or {})},
    )
    return genesis, ChainBuilder(genesis)


def child_of(salt: int) -> Address:
    """Return the address of the factory's child with a salt."""
    return create2_address(FACTORY, salt, contract("child").init_code())


def create(chain: ChainBuilder, salt: int, value: int = 0) -> Address:
    """Add a call that makes the factory create a child, and return its address."""
    chain.send(ANN, FACTORY, call_data("create2(uint256)", salt), value=value)
    return child_of(salt)


def destroy(chain: ChainBuilder, child: Address, beneficiary: Address) -> None:
    """Add a call that destroys a child of the factory in favour of a beneficiary."""
    data = call_data("destroy(address,address)", child, beneficiary)
    chain.send(BEN, FACTORY, data)


def slots(chain: ChainBuilder, function: str, first: int, second: int) -> None:
    """Add a call of a function of `contracts/slots.asm`."""
    data = call_data(f"{function}(uint256,uint256)", first, second)
    chain.send(CYD, SLOTS, data, gas=2_000_000)
