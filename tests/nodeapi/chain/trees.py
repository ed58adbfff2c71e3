"""A small tree of blocks whose branches differ in balances, storage and contracts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from eth_typing import Hash32

from abi.encoding import call_data
from evm.blocks import encode_block
from nodeapi.chain.memory_state import MemoryState
from samples.builder import ChainBuilder
from samples.contracts import contract
from samples.signers import Signer, create_address

ALICE, BOB = Signer("alice"), Signer("bob")
ETHER = 10**18

_FORKS = (
    *("homestead", "eip150", "eip155", "eip158", "byzantium", "constantinople"),
    *("petersburg", "istanbul", "muirGlacier", "berlin", "london"),
)

PARENTS = {
    "t1": None,
    **{"a2": "t1", "a3": "a2", "a4": "a3"},
    **{"b2": "t1", "b3": "b2", "b4": "b3", "b5": "b4"},
    **{"c3": "a2", "c4": "c3"},
    **{"d4": "b3", "e5": "a4"},
}
"""Name of each block → name of its parent. The digit is the block number."""

DESTROYING = {"a3", "b4"}
"""Blocks that destroy the contract `child`."""


def genesis() -> dict[str, Any]:
    """Return a genesis under Shanghai, where contracts can still be destroyed."""
    config: dict[str, Any] = {f"{fork}Block": 0 for fork in _FORKS}
    config |= {"terminalTotalDifficulty": 0, "shanghaiTime": 0}
    return {
        "config": {"chainId": 7, **config},
        "difficulty": "0x20000",
        "gasLimit": "0x1c9c380",
        "alloc": {
            f"0x{signer.address.hex()}": {"balance": hex(1_000 * ETHER)}
            for signer in (ALICE, BOB)
        },
    }


@dataclass(frozen=True, slots=True)
class Node:
    """A block of the tree."""

    name: str
    number: int
    hash: Hash32
    raw: bytes
    line: tuple[str, ...]
    """Names of the block and its ancestors, oldest first."""
    state: MemoryState
    """The state after the block."""


@cache
def tree() -> dict[str, Node]:
    """Return the blocks of the tree by name, parents first."""
    start = ChainBuilder(genesis())
    chains: dict[str | None, ChainBuilder] = {None: start}
    nodes: dict[str, Node] = {}
    for name, parent in PARENTS.items():
        chain = chains[name] = chains[parent].fork()
        _fill(chain, name)
        block = chain.block(extra_data=name.encode())
        nodes[name] = Node(
            name,
            block.header.number,
            block.header.hash,
            encode_block(block),
            ((*nodes[parent].line, name) if parent else (name,)),
            chain.state,
        )
    return nodes


def _fill(chain: ChainBuilder, name: str) -> None:
    """Add the transactions of a block."""
    if name == "t1":
        chain.deploy(ALICE, contract("slots").init_code())
        chain.deploy(ALICE, contract("child").init_code())
        return
    slots, child = (create_address(ALICE.address, nonce) for nonce in (0, 1))
    number, value = chain.head.number + 1, sum(name.encode())
    for slot, written in ((0, value), (number, value), (number - 1, 0)):
        data = call_data("set(uint256,uint256)", slot, written)
        chain.send(ALICE, slots, data)
    chain.send(BOB, Signer(name).address, value=value)
    chain.send(BOB, child, bytes(12) + BOB.address if name in DESTROYING else b"")
    if name.startswith("c"):
        chain.deploy(BOB, contract("slots").init_code())
