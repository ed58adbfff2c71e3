"""States after blocks in a worker process, with rows that all tasks share.

The rows are immutable as long as the block's base, the newest canonical block of its line,
stays canonical. Each query also reads whether it is canonical, so that no row of
another branch is cached, and no transaction is needed.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, LiteralString

from eth_typing import Address, Hash32

from evm.chain_config import ChainConfig
from evm.changes import AccountValue, Changes
from evm.headers import Header, decode_header
from evm.proved_state import Keys, NotEnumerable, ProvedValues, UnknownValues
from evm.simulation.block import CallBlock
from evm.trie_nodes import EMPTY_ROOT
from nodeapi.chain.branches import Branches
from nodeapi.chain.position import ANCESTORS_KEPT
from nodeapi.chain.state_reader import account_value
from nodeapi.errors.blocks import HistoryPruned
from nodeapi.proofs.unknown import UnknownPast
from postgres.cache import BytesCache

if TYPE_CHECKING:
    import psycopg

    from evm.rules.fork import Fork

STATES = 16
"""Number of blocks whose rows are kept."""
ROWS = 50_000
"""Maximum number of accounts and of slots of one block, 20 MB each."""
ROWS_IN_ALL = 200_000
"""Number of rows of all blocks above which the blocks used longest ago are dropped."""
CODE_BYTES = 64 * 2**20
"""Maximum size of all cached code."""
CONFIG_SECONDS = 10.0
"""Time for which a network's forks are cached. A new version may schedule more."""

_BLOCK: LiteralString = (
    "SELECT id, header, total_difficulty, is_canonical FROM nodeapi_block"
    " WHERE network_id = %b AND hash = %b"
)
_ACCOUNTS: LiteralString = (
    "SELECT k.address, v.* FROM nodeapi_block AS base,"
    " unnest(%b::bytea[]) AS k (address)"
    " LEFT JOIN LATERAL ("
    "SELECT true, nonce, balance, code_hash, storage_root FROM nodeapi_accountversion"
    " WHERE network_id = %b AND address = k.address AND block_number <= %b"
    " ORDER BY block_number DESC LIMIT 1) AS v ON true"
    " WHERE base.id = %b AND base.is_canonical"
)
_SLOTS: LiteralString = (
    "SELECT k.address, k.slot, v.value FROM nodeapi_block AS base,"
    " unnest(%b::bytea[], %b::bytea[]) AS k (address, slot)"
    " LEFT JOIN LATERAL ("
    "SELECT value FROM nodeapi_storageversion"
    " WHERE network_id = %b AND address = k.address AND slot = k.slot"
    " AND block_number <= %b ORDER BY block_number DESC LIMIT 1) AS v ON true"
    " WHERE base.id = %b AND base.is_canonical"
)
_LIVE_SLOTS: LiteralString = (
    "SELECT found.* FROM nodeapi_block AS base LEFT JOIN LATERAL ("
    "SELECT DISTINCT ON (slot) slot, value FROM nodeapi_storageversion"
    " WHERE network_id = %b AND address = %b AND block_number <= %b"
    " ORDER BY slot, block_number DESC) AS found ON true"
    " WHERE base.id = %b AND base.is_canonical"
)
_CODES: LiteralString = "SELECT hash, code FROM nodeapi_code WHERE hash = ANY(%b)"

Slot = tuple[Address, int]


class NoSuchBlock(LookupError):
    """Raised for the state after a block that is not stored."""


class RowsMissing(Exception):
    """Raised when a task needs rows that are read together with those of other tasks."""


class StateMoved(Exception):
    """Raised when the chain was reorganised below a cached state, which is then dropped.

    The task has to be repeated.
    """


class BlockRows:
    """The state after a block: `evm.world.StateReader` with a cache that tasks share.

    While `is_collecting` is set, a missing row raises RowsMissing, and `read_wanted`
    reads the missing rows of several tasks with one query of each kind.
    """

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        codes: BytesCache[bytes],
        network_id: int,
        base: tuple[int, int],
        changes: Changes | None,
        checkpoint: int | None = None,
    ) -> None:
        """Begin without rows.

        base: id and number of the newest canonical block of the line.
        changes: those of the side blocks above it; None without any.
        checkpoint: number of the block at which the network started, from which on the
            state is sparse; None for block 0.
        """
        self.connection = connection
        """Replaced after a connection was lost."""
        self.is_collecting = False
        self.has_moved = False
        """Whether the base is no longer canonical."""
        self._codes = codes
        self._network_id = network_id
        self._base_id, self._number = base
        self._checkpoint = checkpoint
        self._accounts: dict[Address, AccountValue | None] = {}
        self._slots: dict[Slot, int] = {}
        self._changes = changes or Changes()
        self._wanted_accounts: set[Address] = set()
        self._wanted_slots: set[Slot] = set()
        self._wanted_codes: set[bytes] = set()

    @property
    def row_count(self) -> int:
        """The number of cached accounts and slots."""
        return len(self._accounts) + len(self._slots)

    # evm.world.StateReader

    def account(self, address: Address) -> AccountValue | None:
        """Return an account, or None if it does not exist. Raises: UnknownValues."""
        try:
            return self._accounts[address]
        except KeyError:
            pass
        if address in self._changes.accounts:
            return self._changes.accounts[address]
        self._want(self._wanted_accounts, address)
        return self._accounts[address]

    def storage(self, address: Address, slot: int) -> int:
        """Return the value of a slot, zero if there is none. Raises: UnknownValues."""
        key = (address, slot)
        value = self._slots.get(key)
        if value is None:
            value = self._changes.storage.get(address, {}).get(slot)
        if value is None:
            self._want(self._wanted_slots, key)
            value = self._slots[key]
        return value

    def live_slots(self, address: Address) -> Iterable[int]:
        """Return the slots of an account that are not zero.

        Raises: StateMoved; NotEnumerable for a sparse state, unless the account had no
            storage at the checkpoint.
        """
        if self._checkpoint is not None:
            roots = self._roots({address}, self._checkpoint)
            if roots[address] != EMPTY_ROOT:
                raise NotEnumerable
        keys = (self._network_id, address, self._number, self._base_id)
        rows = self._fetch(_LIVE_SLOTS, keys)  # one without a slot if there are none
        changed = self._changes.storage.get(address, {})
        below = [int.from_bytes(slot, "big") for slot, value in rows if value]
        return [slot for slot in below if slot not in changed] + [
            slot for slot, value in changed.items() if value
        ]

    def code(self, code_hash: Hash32) -> bytes:
        """Return the contract code with this hash, which must exist."""
        code = self._codes.get(code_hash)
        if code is None:
            code = self._changes.codes.get(code_hash)
        if code is None:
            self._want(self._wanted_codes, code_hash)
            code = self._codes.get(code_hash)
        if code is None:  # longer than the cache
            code = self._read_codes([code_hash])[code_hash]
        return code

    # Reads

    def _want(self, wanted: set[Any], key: Any) -> None:
        """Read a missing row, or note it for `read_wanted`. Raises: RowsMissing."""
        wanted.add(key)
        if self.is_collecting:
            raise RowsMissing
        self.read_wanted()

    def read_wanted(self) -> None:
        """Read the rows that were missing. Raises: StateMoved, UnknownValues."""
        if len(self._accounts) > ROWS:
            self._accounts.clear()
        if len(self._slots) > ROWS:
            self._slots.clear()
        accounts, slots, codes = (
            list(self._wanted_accounts),
            list(self._wanted_slots),
            list(self._wanted_codes),
        )
        self.forget_wanted()
        unknown = Keys()
        if accounts:
            unknown.update(self._read_accounts(accounts))
        if slots:
            unknown.update(self._read_slots(slots))
        if codes:
            for code_hash, code in self._read_codes(codes).items():
                self._codes.put(code_hash, code)
        if unknown:
            raise UnknownValues(unknown)

    def forget_wanted(self) -> None:
        """Forget the rows that were missing."""
        self._wanted_accounts.clear()
        self._wanted_slots.clear()
        self._wanted_codes.clear()

    def _read_accounts(self, addresses: list[Address]) -> Keys:
        """Read accounts, and return those that are unknown."""
        keys = (addresses, self._network_id, self._number, self._base_id)
        unknown = Keys()
        for address, is_known, *columns in self._fetch(_ACCOUNTS, keys):
            if is_known is None and self._checkpoint is not None:
                unknown.accounts.add(address)
            else:
                self._accounts[address] = account_value(columns)
        return unknown

    def _read_slots(self, slots: list[Slot]) -> Keys:
        """Read slots, and return those that are unknown."""
        keys = (
            [address for address, _ in slots],
            [slot.to_bytes(32, "big") for _, slot in slots],
            self._network_id,
            self._number,
            self._base_id,
        )
        missing: set[Slot] = set()
        for address, slot, value in self._fetch(_SLOTS, keys):
            key = (address, int.from_bytes(slot, "big"))
            if value is None and self._checkpoint is not None:
                missing.add(key)
            else:
                self._slots[key] = int.from_bytes(value or b"", "big")
        if not missing or self._checkpoint is None:
            return Keys()
        roots = self._roots({address for address, _ in missing}, self._checkpoint)
        unknown = Keys()
        for key in missing:
            root = roots[key[0]]
            if root == EMPTY_ROOT:  # its slots have rows since they were written
                self._slots[key] = 0
                continue
            unknown.slots.add(key)
            if root is None:
                unknown.accounts.add(key[0])
        return unknown

    def _roots(
        self, addresses: set[Address], checkpoint: int
    ) -> dict[Address, bytes | None]:
        """Return storage roots at the checkpoint. None: the account is unknown there."""
        keys = (list(addresses), self._network_id, checkpoint, self._base_id)
        return {
            address: None if is_known is None else storage_root or EMPTY_ROOT
            for address, is_known, _, _, _, storage_root in self._fetch(_ACCOUNTS, keys)
        }

    def _fetch(self, query: LiteralString, keys: tuple[Any, ...]) -> list[Any]:
        """Return the rows of a query that has at least one. Raises: StateMoved."""
        rows = self.connection.execute(
            query, keys, binary=True, prepare=True
        ).fetchall()
        if not rows:
            self.has_moved = True
            raise StateMoved
        return rows

    def _read_codes(self, hashes: list[bytes]) -> dict[bytes, bytes]:
        rows = self.connection.execute(_CODES, (hashes,), binary=True, prepare=True)
        found = dict(rows.fetchall())
        for code_hash in hashes:
            if code_hash not in found:
                raise LookupError(f"no code with hash 0x{code_hash.hex()}")
        return found


class PastRows(BlockRows):
    """The part of a state below the checkpoint that the service has sent with tasks.

    It has no rows. Code is stored by its hash.
    """

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        codes: BytesCache[bytes],
        network_id: int,
        base: tuple[int, int],
        block_hash: bytes,
    ) -> None:
        """Begin without values. base, block_hash: id, number and hash of the block."""
        super().__init__(connection, codes, network_id, base, None)
        self._block_hash = block_hash

    def add(self, values: ProvedValues) -> None:
        """Add values that were proved."""
        if len(self._accounts) > ROWS:
            self._accounts.clear()
        if len(self._slots) > ROWS:
            self._slots.clear()
        self._accounts |= values.accounts
        self._slots |= values.slots

    def require(self, keys: Keys) -> None:
        """Raise UnknownPast for those of the keys that are unknown."""
        unknown = ProvedValues(self._accounts, self._slots).missing(keys)
        if unknown:
            raise UnknownPast(unknown, self._block_hash)

    def account(self, address: Address) -> AccountValue | None:
        """Return an account, or None if it does not exist. Raises: UnknownPast."""
        try:
            return self._accounts[address]
        except KeyError:
            raise UnknownPast(Keys({address}), self._block_hash) from None

    def storage(self, address: Address, slot: int) -> int:
        """Return the value of a slot, zero if there is none. Raises: UnknownPast."""
        account = self.account(address)
        if account is None or account.storage_root is None:
            return 0
        try:
            return self._slots[address, slot]
        except KeyError:
            raise UnknownPast(Keys(slots={(address, slot)}), self._block_hash) from None

    def live_slots(self, address: Address) -> Iterable[int]:
        """Raise NotEnumerable. Proofs can't enumerate slots."""
        raise NotEnumerable


class AncestorHashes:
    """Hashes of a block's ancestors, the parent's first. They are read when needed."""

    def __init__(self, header: Header, rows: BlockRows, network_id: int) -> None:
        """Set the block."""
        self._header = header
        self._rows = rows
        self._network_id = network_id
        self._hashes: list[Hash32] | None = None

    def __iter__(self) -> Iterator[Hash32]:
        """Yield up to 256 hashes. Raises: HistoryPruned for one that is not stored."""
        if self._hashes is None:
            branches = Branches(self._rows.connection, self._network_id)
            parent = branches.find(self._header.parent_hash)
            self._hashes = (
                []
                if parent is None
                else branches.ancestor_hashes(parent, ANCESTORS_KEPT)
            )
        yield from self._hashes
        number, count = self._header.number, len(self._hashes)
        if count < min(number, ANCESTORS_KEPT):  # the end is not that of the chain
            raise HistoryPruned(number - count + ANCESTORS_KEPT)


@dataclass(frozen=True)
class BlockState:
    """The state after a stored block, canonical or not."""

    header: Header
    total_difficulty: int
    is_canonical: bool
    """Whether the block was canonical when it was read."""
    config: ChainConfig
    state: BlockRows
    """Reads accounts, slots and code; shared by all tasks at the block."""
    ancestor_hashes: Iterable[Hash32]
    """From the block's parent on, newest first."""

    @cached_property
    def fork(self) -> Fork:
        """The fork of the block itself. Raises: InvalidChainConfig."""
        header = self.header
        is_merged = header.difficulty == 0
        return self.config.fork_at(header.number, header.timestamp, is_merged)

    @cached_property
    def call_block(self) -> CallBlock:
        """The block as calls see it. Raises: InvalidChainConfig."""
        return CallBlock.of_header(
            self.header, self.config, self.fork, self.ancestor_hashes
        )

    def child_fork(self, number: int, timestamp: int) -> Fork:
        """Return the fork of a later block. Raises: InvalidChainConfig."""
        is_merged = self.config.is_merged(self.total_difficulty)
        return self.config.fork_at(number, timestamp, is_merged)


class StateCache:
    """The states of a worker process, by network and block hash."""

    def __init__(self) -> None:
        self._states: OrderedDict[tuple[int, bytes], BlockState] = OrderedDict()
        self._configs: dict[int, tuple[float, ChainConfig, int | None]] = {}
        self._codes: BytesCache[bytes] = BytesCache(CODE_BYTES)
        self._used: dict[int, BlockRows] = {}
        self._is_collecting = False
        self._newest: BlockState | None = None
        """The state that was used last."""

    def after(
        self, connection: psycopg.Connection[Any], network_id: int, block_hash: bytes
    ) -> BlockState:
        """Return the state after a block.

        Raises: NoSuchBlock, StateMoved.
        """
        key = (network_id, block_hash)
        state = self._states.get(key)
        if state is None or state.state.has_moved:
            state = self._states[key] = self._load(connection, network_id, block_hash)
        if state is not self._newest:
            self._newest = state
            self._states.move_to_end(key)
            self._evict()
        rows = state.state
        rows.connection = connection
        rows.is_collecting = self._is_collecting
        if self._is_collecting:
            self._used[id(rows)] = rows
        return state

    def _evict(self) -> None:
        """Drop the least recently used states while there are too many."""
        states = self._states
        row_count = sum(each.state.row_count for each in states.values())
        while len(states) > STATES or (row_count > ROWS_IN_ALL and len(states) > 1):
            _, dropped = states.popitem(last=False)
            row_count -= dropped.state.row_count

    def collect(self, is_collecting: bool) -> None:
        """Set whether missing rows are collected instead of read."""
        self._is_collecting = is_collecting

    def read_wanted(self) -> None:
        """Read the rows that were collected."""
        used, self._used = self._used, {}
        for rows in used.values():
            try:
                rows.read_wanted()
            except StateMoved:
                rows.forget_wanted()  # the tasks find the state's successor
            except UnknownValues:
                pass  # each task meets its own when it is executed alone

    def config(
        self, connection: psycopg.Connection[Any], network_id: int
    ) -> ChainConfig:
        """Return a network's chain id and forks. Raises: NoSuchBlock."""
        return self._network(connection, network_id)[0]

    def checkpoint(
        self, connection: psycopg.Connection[Any], network_id: int
    ) -> int | None:
        """Return the number of a network's checkpoint, None without one.

        Raises: NoSuchBlock.
        """
        return self._network(connection, network_id)[1]

    def _network(
        self, connection: psycopg.Connection[Any], network_id: int
    ) -> tuple[ChainConfig, int | None]:
        """Return a network's forks and checkpoint. Raises: NoSuchBlock."""
        now = time.monotonic()
        found = self._configs.get(network_id)
        if found is not None and now - found[0] < CONFIG_SECONDS:
            return found[1:]
        row = connection.execute(
            "SELECT genesis, checkpoint_number FROM networks_network WHERE id = %s",
            (network_id,),
        ).fetchone()
        if row is None:
            raise NoSuchBlock
        config = ChainConfig.from_genesis(row[0])
        self._configs[network_id] = now, config, row[1]
        return config, row[1]

    def _load(
        self, connection: psycopg.Connection[Any], network_id: int, block_hash: bytes
    ) -> BlockState:
        row = connection.execute(
            _BLOCK, (network_id, block_hash), binary=True, prepare=True
        ).fetchone()
        if row is None:
            raise NoSuchBlock
        block_id, raw, total_difficulty, is_canonical = row
        header = decode_header(raw)
        base, changes = (block_id, header.number), None
        if not is_canonical:
            base, changes = _side_state(connection, network_id, block_hash)
        config, checkpoint = self._network(connection, network_id)
        rows: BlockRows
        if checkpoint is not None and header.number < checkpoint:
            rows = PastRows(connection, self._codes, network_id, base, block_hash)
        else:
            rows = BlockRows(
                connection, self._codes, network_id, base, changes, checkpoint
            )
        return BlockState(
            header,
            int(total_difficulty),
            is_canonical,
            config,
            rows,
            AncestorHashes(header, rows, network_id),
        )


def _side_state(
    connection: psycopg.Connection[Any], network_id: int, block_hash: bytes
) -> tuple[tuple[int, int], Changes]:
    """Return id and number of a side block's base, and the changes above the base.

    Raises: StateMoved if the chain is being reorganised.
    """
    branches = Branches(connection, network_id)
    block = branches.find(block_hash)
    if block is None or block.is_canonical:
        raise StateMoved
    _, line = branches.side_line(block)
    changes = Changes()
    try:
        for side in line:
            changes.apply(branches.side_changes(side))
    except LookupError as error:  # it has become canonical
        raise StateMoved from error
    lowest = branches.find(line[0].hash)
    base = None if lowest is None else branches.find(lowest.header.parent_hash)
    if base is None or not base.is_canonical:
        raise StateMoved
    return (base.id, base.header.number), changes
