"""The state within a block, from its access list instead of its transactions' execution.

The list has every value that the block changed, after each transaction; all other values
are those after the parent. So the state before a transaction is known without executing
the ones before it.

Source: https://eips.ethereum.org/EIPS/eip-7928
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, LiteralString, TypeVar

from eth_typing import Address, Hash32

from evm.block_access_list import ListedAccount, decode_access_list
from evm.changes import AccountValue
from evm.signatures import keccak
from evm.tracers.record import RecordDamaged, unpack
from evm.world import EMPTY_CODE_HASH, NO_ACCOUNT
from nodeapi.chain.replay import Origin, Replay, Start
from nodeapi.chain.replay_counts import counts
from nodeapi.chain.state_reader import CachedState
from nodeapi.documents.receipt_codec import log_count

if TYPE_CHECKING:
    import psycopg

    from evm.world import StateReader, World

_LIST: LiteralString = """
    SELECT l.list, ARRAY(
        SELECT substring(receipt FROM 1 FOR 5) FROM nodeapi_transactionrecord
        WHERE block_id = b.id AND index < %b
    )
    FROM nodeapi_block b JOIN nodeapi_blockaccesslist l ON l.block_id = b.id
    WHERE b.network_id = %b AND b.hash = %b
"""

T = TypeVar("T")

logger = logging.getLogger(__name__)


class ListedState:
    """The state before a transaction: the parent's with the changes of a list."""

    def __init__(
        self,
        before: StateReader,
        accounts: Iterable[ListedAccount],
        index: int,
        *,
        keeps_destroyed: bool,
        execute: Callable[[], World] | None = None,
    ) -> None:
        """Read the changes.

        before: the parent's state. index: of the transaction in its block.
        keeps_destroyed: whether contracts with storage can't be destroyed (EIP-6780).
            Otherwise an account that loses its code has lost its storage, too.
        execute: executes the transactions before. It is called if an account or slot is
            read that the list does not name. None: the parent's values of these are right.
        """
        self._before = before
        self._execute = execute
        self._executed: World | None = None
        self._named: dict[Address, set[int]] = {}
        self._balances: dict[Address, int] = {}
        self._nonces: dict[Address, int] = {}
        self._code_hashes: dict[Address, Hash32] = {}
        self._storage: dict[Address, dict[int, int]] = {}
        self._wiped: set[Address] = set()
        self._codes: dict[Hash32, bytes] = {}
        for address, storage, reads, balances, nonces, codes in accounts:
            if execute is not None:
                self._named[address] = {*storage, *reads}
            for found, changes in ((self._balances, balances), (self._nonces, nonces)):
                number = _last(changes, index)
                if number is not None:
                    found[address] = number
            code = _last(codes, index)
            if code is not None:
                code_hash = self._code_hashes[address] = Hash32(keccak(code))
                self._codes[code_hash] = code
                if not keeps_destroyed and any(
                    not each for at, each in codes if at <= index
                ):
                    self._wiped.add(address)
            values = {
                slot: value
                for slot, changes in storage.items()
                if (value := _last(changes, index)) is not None
            }
            if values:
                self._storage[address] = values
        self._changed = {*self._balances, *self._nonces, *self._code_hashes}

    def account(self, address: Address) -> AccountValue | None:
        """Return an account, or None if it does not exist."""
        before = self._before.account(address)
        if address not in self._changed:
            if self._execute is None or address in self._named:
                return before
            root = None if before is None else before.storage_root
            found = self._world(self._execute).account(address)
            return None if found is None else AccountValue(*found, root)
        nonce, balance, code_hash = (before or NO_ACCOUNT)[:3]
        nonce = self._nonces.get(address, nonce)
        balance = self._balances.get(address, balance)
        code_hash = self._code_hashes.get(address, code_hash)
        if not nonce and not balance and code_hash == EMPTY_CODE_HASH:
            return None
        root = None
        if before is not None and address not in self._wiped:
            root = before.storage_root
        return AccountValue(nonce, balance, code_hash, root)

    def storage(self, address: Address, slot: int) -> int:
        """Return the value of a storage slot, zero if it was never written."""
        value = self._storage.get(address, {}).get(slot)
        if value is not None:
            return value
        if self._execute is not None and slot not in self._named.get(address, ()):
            return self._world(self._execute).get_storage(address, slot)
        return 0 if address in self._wiped else self._before.storage(address, slot)

    def _world(self, execute: Callable[[], World]) -> World:
        """Return the state before the transaction as its execution gives it."""
        if self._executed is None:
            counts.missing += 1
            self._executed = execute()
        return self._executed

    def live_slots(self, address: Address) -> Iterable[int]:
        """Return the slots of an account that are not zero."""
        values = self._storage.get(address, {})
        changed = [slot for slot, value in values.items() if value]
        if address in self._wiped:
            return changed
        kept = [s for s in self._before.live_slots(address) if s not in values]
        return kept + changed

    def code(self, code_hash: Hash32) -> bytes:
        """Return the contract code with this hash."""
        code = self._codes.get(code_hash)
        return self._before.code(code_hash) if code is None else code


def _last(changes: list[tuple[int, T]], index: int) -> T | None:
    """Return the value before the transaction with an index, None if it did not change."""
    found = None
    for at, value in changes:  # 0: before the first transaction, whose own index is 1
        if at > index:
            break
        found = value
    return found


def replay_before(
    connection: psycopg.Connection[Any],
    network_id: int,
    origin: Origin,
    index: int,
    progress: Callable[[], object] = int,
    *,
    own: int = 0,
) -> Replay:
    """Return the execution of a block before one of its transactions.

    The transactions before it are only executed if the block's list is not stored.

    index: of the transaction in its block. progress: called for each one that is executed.
    own: number of the block's transactions that the caller executes next, if it executes
        nothing else. Then the list names all values that are read, and those of the
        parent's state are read together.
    """
    found = _find(connection, network_id, origin, index) if index or own > 1 else None
    if found is not None:
        accounts, logs = found
        _prefetch(origin.state, accounts, index, own)
    if found is None or not index:
        counts.by_execution += index > 0
        return _executed(origin, index, progress)
    counts.from_lists += 1
    state = ListedState(
        origin.state,
        accounts,
        index,
        keeps_destroyed=origin.fork.keeps_destroyed_contracts,
        execute=(lambda: _executed(origin, index, progress).world) if own else None,
    )
    return Replay(origin, start=Start(index, state, logs))


def _executed(origin: Origin, index: int, progress: Callable[[], object]) -> Replay:
    """Execute the transactions before the one with an index."""
    replay = Replay(origin)
    for _ in range(index):
        progress()
        replay.skip()
    return replay


def _find(
    connection: psycopg.Connection[Any], network_id: int, origin: Origin, index: int
) -> tuple[list[ListedAccount], int] | None:
    """Return a block's list, and the number of logs before a transaction.

    None if the list is not stored, or not sufficient.
    """
    if not origin.fork.clears_empty_accounts:
        return None  # a list does not say whether an empty account exists
    row = connection.execute(
        _LIST, (index, network_id, origin.block.header.hash), binary=True, prepare=True
    ).fetchone()
    if row is None:
        return None
    try:
        raw = unpack(row[0])
    except RecordDamaged as error:
        logger.error("access list of 0x%s: %s", origin.block.header.hash.hex(), error)
        return None
    return list(decode_access_list(raw)), sum(map(log_count, row[1]))


def _prefetch(
    state: StateReader, accounts: Iterable[ListedAccount], index: int, own: int
) -> None:
    """Read what transactions need of the parent's state, in two queries.

    own: number of the transactions. If it is one, its changes show what it needs.
    """
    if not own or not isinstance(state, CachedState):
        return
    place = index + 1
    addresses, slots = [], []
    for one in accounts:
        if own > 1:
            wanted = [*one.storage, *one.reads]
            is_wanted = True
        else:
            changes = (one.balances, one.nonces, one.codes)
            wanted = [
                slot
                for slot, found in one.storage.items()
                if any(at == place for at, _ in found)
            ]
            is_wanted = bool(wanted) or any(
                at == place for found in changes for at, _ in found
            )
        if is_wanted:
            addresses.append(one.address)
            slots += [(one.address, slot) for slot in wanted]
    state.fetch(addresses, slots)
