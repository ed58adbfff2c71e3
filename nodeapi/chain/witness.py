"""Execution witnesses: all data that the execution of a block reads.

With a witness, a block can be executed and its state root computed without a database.
Source: go-ethereum core/stateless
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from eth_typing import Address, Hash32

from evm.changes import AccountValue
from evm.execution import execute_block
from evm.headers import ZERO_HASH, Header
from evm.proved_state import Keys
from evm.trie import MissingTrieNode, NodeCache, NodeReader
from evm.world import World
from nodeapi.chain.branch import StateMismatch
from nodeapi.chain.branches import Branches
from nodeapi.chain.replay import NotTraceable, Origin
from nodeapi.proofs.unknown import UnknownNodes

if TYPE_CHECKING:
    import psycopg

    from evm.state_trie import StateTrie
    from evm.world import StateReader

_NODES_CACHED = 100_000


@dataclass(frozen=True, slots=True)
class Witness:
    """The data that a block's execution reads.

    headers: the parent's and those of further ancestors whose hashes are read, newest
        first. codes: contract code. nodes: RLP of the trie nodes of the parent's state.
    keys: the addresses and, as 32 bytes, the numbers of slots that are read or changed.
    """

    headers: list[Header]
    codes: set[bytes]
    nodes: set[bytes]
    keys: set[bytes]


class _WatchedState:
    """An `evm.world.StateReader` that records the accounts, slots and code it reads."""

    def __init__(self, state: StateReader) -> None:
        self._state = state
        self.addresses: set[Address] = set()
        self.slots: defaultdict[Address, set[int]] = defaultdict(set)
        self.codes: set[bytes] = set()

    def account(self, address: Address) -> AccountValue | None:
        self.addresses.add(address)
        return self._state.account(address)

    def storage(self, address: Address, slot: int) -> int:
        self.addresses.add(address)
        self.slots[address].add(slot)
        return self._state.storage(address, slot)

    def live_slots(self, address: Address) -> Iterable[int]:
        return self._state.live_slots(address)

    def code(self, code_hash: Hash32) -> bytes:
        code = self._state.code(code_hash)
        self.codes.add(code)
        return code


class _WatchedHashes:
    """Hashes of ancestors. The number of hashes that are read is recorded."""

    def __init__(self, hashes: Iterable[Hash32]) -> None:
        self._hashes = hashes
        self.count = 0

    def __iter__(self) -> Iterator[Hash32]:
        for number, each in enumerate(self._hashes, 1):
            self.count = max(self.count, number)
            yield each


class _WatchedNodes:
    """Trie nodes that are recorded when they are read."""

    def __init__(self, below: NodeReader) -> None:
        self._below = below
        self.found: set[bytes] = set()

    def nodes(
        self, owner: bytes, paths: Collection[bytes], likely: Collection[bytes] = ()
    ) -> Mapping[bytes, bytes]:
        nodes = self._below.nodes(owner, paths, likely)
        self.found.update(nodes.values())
        return nodes


class ParentNodes(NodeReader, Protocol):
    """The trie nodes after a block, such as `nodeapi.chain.trie_at.Rewinding`."""

    def open(self, reader: NodeReader, cache: NodeCache) -> StateTrie:
        """Return tries that can be changed, which read nodes from a reader."""


def build_witness(
    connection: psycopg.Connection[Any],
    network_id: int,
    origin: Origin,
    parent: ParentNodes,
) -> Witness:
    """Execute a block and return its witness.

    parent: the trie nodes after the block's parent.

    Raises: UnknownNodes on a sparse network; TooManyChanges; NotTraceable if an ancestor is not stored; StateMismatch if
        the database is damaged.
    """
    header, fork = origin.block.header, origin.fork
    state, hashes = _WatchedState(origin.state), _WatchedHashes(origin.ancestor_hashes)
    world = World(state)
    execute_block(
        origin.block,
        fork,
        origin.config,
        world,
        hashes,
        lambda: ZERO_HASH,  # only receipts contain it, which are not used here
    )
    changes = world.changes(clears_empty_accounts=fork.clears_empty_accounts)
    for address, account in changes.accounts.items():
        if account is None:  # The nodes of its storage are not needed.
            changes.storage.pop(address, None)
    nodes = _WatchedNodes(parent)
    addresses = sorted(state.addresses | changes.accounts.keys())
    slots = {
        address: sorted(state.slots[address] | changes.storage.get(address, {}).keys())
        for address in sorted(state.slots.keys() | changes.storage.keys())
    }
    keys: set[bytes] = set(addresses)
    keys.update(slot.to_bytes(32) for found in slots.values() for slot in found)
    try:
        tries = parent.open(nodes, NodeCache(_NODES_CACHED))
        tries.prove_accounts(addresses)
        for address, found in slots.items():
            tries.prove_slots(address, found)
        root = tries.apply(changes)
    except MissingTrieNode as error:
        read = {(address, slot) for address, found in slots.items() for slot in found}
        raise UnknownNodes(Keys({*addresses, *slots}, read)) from error
    if root != header.state_root:
        raise StateMismatch(f"block 0x{header.hash.hex()} has another state root")
    headers = _ancestors(connection, network_id, header, max(hashes.count, 1))
    return Witness(headers, state.codes, nodes.found, keys)


def _ancestors(
    connection: psycopg.Connection[Any], network_id: int, header: Header, count: int
) -> list[Header]:
    branches = Branches(connection, network_id)
    parent = branches.find(header.parent_hash)
    if parent is None:
        raise NotTraceable(f"parent 0x{header.parent_hash.hex()} not found")
    return [block.header for block in branches.ancestors(parent, count)]
