"""The state after a block: version rows below layers of changes and caches."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, LiteralString

from eth_typing import Address, Hash32
from lru import LRU

from evm.changed_state import ChangedState
from evm.changes import AccountValue, Changes
from evm.proved_state import Keys, NotEnumerable, UnknownValues
from evm.trie_nodes import EMPTY_ROOT
from evm.world import EMPTY_CODE_HASH
from nodeapi.errors.blocks import HistoryPruned

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    import psycopg

    from evm.state_trie import DirtyNodes
    from nodeapi.chain.database import Pipeline

ACCOUNTS_CACHED = 200_000
SLOTS_CACHED = 400_000
"""Maximum numbers of cached accounts and slots. An account takes 500 bytes and a slot
350, so that both caches stay below 250 MB."""

_CODES_CACHED = 2_000

_UNKNOWN: Any = object()

Slot = tuple[Address, int]
Accounts = dict[Address, AccountValue | None]
Slots = dict[Slot, int]
Answer = Callable[[], tuple[Accounts, Slots]]
"""A function that waits for the results of queries in flight and returns them."""

_ACCOUNTS: LiteralString = (
    "SELECT k.address, v.* FROM unnest(%b::bytea[]) AS k (address)"
    " LEFT JOIN LATERAL ("
    "SELECT true, nonce, balance, code_hash, storage_root FROM nodeapi_accountversion"
    " WHERE network_id = %b AND address = k.address AND block_number <= %b"
    " ORDER BY block_number DESC LIMIT 1) AS v ON true"
)
_SLOTS: LiteralString = (
    "SELECT k.address, k.slot, v.value"
    " FROM unnest(%b::bytea[], %b::bytea[]) AS k (address, slot)"
    " LEFT JOIN LATERAL ("
    "SELECT value FROM nodeapi_storageversion"
    " WHERE network_id = %b AND address = k.address AND slot = k.slot"
    " AND block_number <= %b ORDER BY block_number DESC LIMIT 1) AS v ON true"
)
_NODES_BELOW: LiteralString = (
    "SELECT below.node FROM unnest(%b::bytea[]) AS top (path), LATERAL ("
    "SELECT node FROM nodeapi_trienode WHERE network_id = %b AND owner = %b"
    " AND path > top.path AND path < top.path || '\\x10' ORDER BY path LIMIT %b"
    ") AS below LIMIT %b"
)
BELOW_ONE_PATH = 256
"""Maximum number of nodes read below one path, in the order of their paths. Leaves count."""
BELOW_ALL_PATHS = 2**16
"""Maximum number of nodes read in one query, 40 MB. A block may need thousands of paths.
"""


class StoredState:
    """The canonical state after block `number`, read from version rows.

    A network that started at block 0 has a row for each value that is not zero. The state
    of one that started at a checkpoint is sparse: rows of the checkpoint's block hold what
    was proved, zeros and absent accounts as well, and any other value is unknown. Below it,
    each read raises HistoryPruned.
    """

    def __init__(
        self, connection: psycopg.Connection[Any], network_id: int, number: int
    ) -> None:
        self._connection = connection
        self._network_id = network_id
        self._number = number

    @cached_property
    def checkpoint(self) -> int | None:
        """Number of the checkpoint's block, None if the state is complete."""
        row = self._connection.execute(
            "SELECT checkpoint_number FROM networks_network WHERE id = %b",
            (self._network_id,),
            binary=True,
        ).fetchone()
        return None if row is None else row[0]

    def account(self, address: Address) -> AccountValue | None:
        """Return an account, or None if it does not exist. Raises: UnknownValues."""
        row = self._connection.execute(
            "SELECT nonce, balance, code_hash, storage_root"
            " FROM nodeapi_accountversion"
            " WHERE network_id = %b AND address = %b AND block_number <= %b"
            " ORDER BY block_number DESC LIMIT 1",
            (self._network_id, address, self._number),
            prepare=True,
        ).fetchone()
        if row is None:
            if self.checkpoint is not None:
                self._require_since(self.checkpoint)
                raise UnknownValues(Keys(accounts={address}))
            return None
        return account_value(row)

    def storage(self, address: Address, slot: int) -> int:
        """Return the value of a slot, zero if there is none. Raises: UnknownValues."""
        row = self._connection.execute(
            "SELECT value FROM nodeapi_storageversion"
            " WHERE network_id = %b AND address = %b AND slot = %b"
            " AND block_number <= %b"
            " ORDER BY block_number DESC LIMIT 1",
            (self._network_id, address, slot.to_bytes(32, "big"), self._number),
            prepare=True,
        ).fetchone()
        if row is None:
            self._require_zeros([(address, slot)])
            return 0
        return int.from_bytes(row[0], "big")

    def accounts(
        self, addresses: Collection[Address]
    ) -> dict[Address, AccountValue | None]:
        """Return several accounts, in one query. Raises: UnknownValues."""
        return self._found_accounts(self._ask(_ACCOUNTS, self._account_keys(addresses)))

    def slots(self, keys: Collection[Slot]) -> dict[Slot, int]:
        """Return the values of several slots, in one query. Raises: UnknownValues."""
        return self._found_slots(self._ask(_SLOTS, self._slot_keys(keys)))

    def unknown(self, keys: Keys) -> Keys:
        """Return the keys whose values are unknown, with the accounts of such slots."""
        found = Keys()
        for read in (
            lambda: StoredState.accounts(self, keys.accounts),
            lambda: StoredState.slots(self, keys.slots),
        ):
            try:
                read()
            except UnknownValues as error:
                found.update(error.keys)
        return found

    def ask(
        self,
        pipeline: Pipeline,
        addresses: Collection[Address],
        keys: Collection[Slot],
    ) -> Answer:
        """Send queries for accounts and slots. Return a function that waits for the results.

        The function raises UnknownValues.
        """
        accounts = pipeline.send(_ACCOUNTS, self._account_keys(addresses))
        slots = pipeline.send(_SLOTS, self._slot_keys(keys))

        def answer() -> tuple[Accounts, Slots]:
            pipeline.sync()
            return self._found_accounts(accounts), self._found_slots(slots)

        return answer

    def _found_accounts(self, rows: Iterable[Any]) -> Accounts:
        accounts: Accounts = {}
        missing = set()
        for address, is_known, *value in rows:
            accounts[address] = account_value(value)
            if is_known is None:
                missing.add(address)
        if missing and self.checkpoint is not None:
            self._require_since(self.checkpoint)
            raise UnknownValues(Keys(accounts=missing))
        return accounts

    def _found_slots(self, rows: Iterable[Any]) -> Slots:
        slots: Slots = {}
        missing = []
        for address, slot, value in rows:
            key = address, int.from_bytes(slot, "big")
            slots[key] = int.from_bytes(value or b"", "big")
            if value is None:
                missing.append(key)
        if missing:
            self._require_zeros(missing)
        return slots

    def _require_zeros(self, keys: Collection[Slot]) -> None:
        """Check that slots without a row are zero.

        An account that had no storage at the checkpoint has a row for each slot that was
        written since.

        Raises: UnknownValues for the others.
        """
        if self.checkpoint is None:
            return
        roots = self._roots({address for address, _ in keys})
        unknown = {key for key in keys if roots[key[0]] != EMPTY_ROOT}
        if unknown:
            accounts = {address for address, _ in unknown if roots[address] is None}
            raise UnknownValues(Keys(accounts, unknown))

    def _roots(self, addresses: Collection[Address]) -> dict[Address, bytes | None]:
        """Return storage roots at the checkpoint. None: the account is unknown there.

        Raises: HistoryPruned for a state below the checkpoint.
        """
        assert self.checkpoint is not None
        self._require_since(self.checkpoint)
        keys = list(addresses), self._network_id, self.checkpoint
        return {
            address: None if is_known is None else storage_root or EMPTY_ROOT
            for address, is_known, _, _, _, storage_root in self._ask(_ACCOUNTS, keys)
        }

    def _require_since(self, checkpoint: int) -> None:
        """Raise HistoryPruned for a state below the checkpoint."""
        if self._number < checkpoint:
            raise HistoryPruned(checkpoint)

    def _ask(self, query: LiteralString, keys: Sequence[Any]) -> Iterable[Any]:
        return self._connection.execute(query, keys, binary=True, prepare=True)

    def _account_keys(self, addresses: Collection[Address]) -> Sequence[Any]:
        return list(addresses), self._network_id, self._number

    def _slot_keys(self, keys: Collection[Slot]) -> Sequence[Any]:
        return (
            [address for address, _ in keys],
            [slot.to_bytes(32, "big") for _, slot in keys],
            self._network_id,
            self._number,
        )

    def live_slots(self, address: Address) -> Iterable[int]:
        """Return the slots of an account that are not zero.

        Raises: NotEnumerable for a sparse state, unless the account had no storage at the
            checkpoint. Nothing else asks for them there since EIP-6780 (Cancun).
        """
        if self.checkpoint is not None and self._roots([address]) != {
            address: EMPTY_ROOT
        }:
            raise NotEnumerable
        rows = self._connection.execute(
            "SELECT DISTINCT ON (slot) slot, value FROM nodeapi_storageversion"
            " WHERE network_id = %b AND address = %b AND block_number <= %b"
            " ORDER BY slot, block_number DESC",
            (self._network_id, address, self._number),
        )
        return [int.from_bytes(slot, "big") for slot, value in rows if value]

    def code(self, code_hash: Hash32) -> bytes:
        """Return the contract code with this hash."""
        row = self._connection.execute(
            "SELECT code FROM nodeapi_code WHERE hash = %b", (code_hash,), prepare=True
        ).fetchone()
        if row is None:
            raise LookupError(f"no code with hash 0x{code_hash.hex()}")
        return bytes(row[0])


def account_value(columns: Sequence[Any]) -> AccountValue | None:
    """Return the account of a row: nonce, balance, code hash and storage root.

    None if the account does not exist.
    """
    nonce, balance, code_hash, storage_root = columns
    if nonce is None:
        return None
    return AccountValue(
        int(nonce), int(balance), code_hash or EMPTY_CODE_HASH, storage_root
    )


class OverlayState(ChangedState):
    """A stored state with changes on top."""

    def __init__(self, below: StoredState | OverlayState, changes: Changes) -> None:
        super().__init__(below, changes)
        self._below = below
        self._changes = changes

    def accounts(self, addresses: Collection[Address]) -> Accounts:
        """Return several accounts, in one query."""
        changed = self._changed_accounts(addresses)
        return (
            self._below.accounts([a for a in addresses if a not in changed]) | changed
        )

    def slots(self, keys: Collection[Slot]) -> Slots:
        """Return the values of several slots, in one query."""
        changed = self._changed_slots(keys)
        return self._below.slots([key for key in keys if key not in changed]) | changed

    def ask(
        self,
        pipeline: Pipeline,
        addresses: Collection[Address],
        keys: Collection[Slot],
    ) -> Answer:
        """Send queries for accounts and slots. Return a function that waits for the results."""
        changed, changed_slots = (
            self._changed_accounts(addresses),
            self._changed_slots(keys),
        )
        below = self._below.ask(
            pipeline,
            [address for address in addresses if address not in changed],
            [key for key in keys if key not in changed_slots],
        )

        def answer() -> tuple[Accounts, Slots]:
            accounts, slots = below()
            return accounts | changed, slots | changed_slots

        return answer

    def _changed_accounts(self, addresses: Collection[Address]) -> Accounts:
        changed = self._changes.accounts
        return {
            address: changed[address] for address in addresses if address in changed
        }

    def _changed_slots(self, keys: Collection[Slot]) -> Slots:
        return {
            key: value
            for key in keys
            if (value := self._changes.storage.get(key[0], {}).get(key[1])) is not None
        }


class CachedState:
    """The state at the importer's head, with a cache of accounts, slots and code."""

    def __init__(
        self,
        below: StoredState | OverlayState,
        pipeline: Pipeline | None = None,
    ) -> None:
        """Start from a state.

        pipeline: used by `expect`. Without it, `expect` has no effect and `fetch` reads
            everything.
        """
        self._below = below
        self._pipeline = pipeline
        self._answer: Answer | None = None
        """The result of the prefetch in flight, or None."""
        self._accounts: Any = LRU(ACCOUNTS_CACHED)
        self._slots: Any = LRU(SLOTS_CACHED)
        self._codes: Any = LRU(_CODES_CACHED)
        self.missed_slots: set[Slot] = set()
        """Slots that had to be read individually since the last `absorb`."""

    def fetch(self, addresses: Iterable[Address], slots: Iterable[Slot]) -> None:
        """Read accounts and slots that are not cached, in at most two queries."""
        unknown, unknown_slots = self._unknown(addresses, slots)
        if unknown:
            self._accounts.update(self._below.accounts(unknown))
        if unknown_slots:
            self._slots.update(self._below.slots(unknown_slots))

    def expect(self, addresses: Iterable[Address], slots: Iterable[Slot]) -> bool:
        """Start to prefetch accounts and slots that are not cached, for the next state.

        Return False without a pipeline, or if another prefetch is in flight.
        """
        if self._pipeline is None or self._answer is not None:
            return False
        unknown = self._unknown(addresses, slots)
        if any(unknown):
            self._answer = self._below.ask(self._pipeline, *unknown)
        return True

    def _unknown(
        self, addresses: Iterable[Address], slots: Iterable[Slot]
    ) -> tuple[list[Address], list[Slot]]:
        return (
            [address for address in addresses if address not in self._accounts],
            [key for key in slots if key not in self._slots],
        )

    def account(self, address: Address) -> AccountValue | None:
        """Return an account, or None if it does not exist."""
        found = self._accounts.get(address, _UNKNOWN)
        if found is _UNKNOWN:
            found = self._accounts[address] = self._below.account(address)
        value: AccountValue | None = found
        return value

    def storage(self, address: Address, slot: int) -> int:
        """Return the value of a storage slot, zero if it was never written."""
        key = (address, slot)
        value: int | None = self._slots.get(key)
        if value is None:
            value = self._slots[key] = self._below.storage(address, slot)
            self.missed_slots.add(key)
        return value

    def live_slots(self, address: Address) -> Iterable[int]:
        """Return the slots of an account that are not zero."""
        return self._below.live_slots(address)

    def code(self, code_hash: Hash32) -> bytes:
        """Return the contract code with this hash."""
        code: bytes | None = self._codes.get(code_hash)
        if code is None:
            code = self._codes[code_hash] = self._below.code(code_hash)
        return code

    def absorb(self, changes: Changes, below: StoredState | OverlayState) -> None:
        """Move to a later state, which differs from the present one by the changes."""
        if self._answer is not None:  # values of the earlier state
            accounts, slots = self._answer()
            self._answer = None
            self._accounts.update(accounts)
            self._slots.update(slots)
        self._below = below
        self.missed_slots = set()
        self._accounts.update(changes.accounts)
        for address, values in changes.storage.items():
            for slot, value in values.items():
                self._slots[(address, slot)] = value
        self._codes.update(changes.codes)


class StoredNodes:
    """The stored trie nodes of the head's state."""

    def __init__(self, connection: psycopg.Connection[Any], network_id: int) -> None:
        self._connection = connection
        self._network_id = network_id
        self.pending: DirtyNodes = {}
        """Nodes of the running commit, whose rows may or may not be visible yet."""
        self.collected: DirtyNodes = {}
        """Nodes of a later batch, which is not committed yet."""

    def nodes(
        self, owner: bytes, paths: Collection[bytes], likely: Collection[bytes] = ()
    ) -> Mapping[bytes, bytes]:
        """Return the nodes of one trie at these paths. Absent nodes are omitted."""
        written, newer = self.pending.get(owner, {}), self.collected.get(owner, {})
        wanted = {*paths, *likely}
        pending = {path: written[path] for path in wanted if path in written}
        pending |= {path: newer[path] for path in wanted if path in newer}
        stored = self._read(owner, [path for path in wanted if path not in pending])
        return stored | {
            path: node for path, node in pending.items() if node is not None
        }

    def nodes_below(self, owner: bytes, paths: Collection[bytes]) -> list[bytes]:
        """Return the nodes of one trie below these paths, limited by BELOW_ONE_PATH.

        Nodes of the running commit may be returned in their previous version.
        """
        rows = self._connection.execute(
            _NODES_BELOW,
            (
                list(paths),
                self._network_id,
                owner,
                BELOW_ONE_PATH,
                BELOW_ALL_PATHS,
            ),
            binary=True,
            prepare=True,
        )
        return [node for (node,) in rows.fetchall()]

    def _read(self, owner: bytes, paths: list[bytes]) -> dict[bytes, bytes]:
        rows = self._connection.execute(
            "SELECT path, node FROM nodeapi_trienode"
            " WHERE network_id = %b AND owner = %b AND path = ANY(%b)",
            (self._network_id, owner, paths),
            binary=True,
            prepare=True,
        )
        return dict(rows.fetchall())
