"""The state within a block, from its access list instead of its transactions' execution.

The list has every value that the block changed, after each transaction; all other values
are those after the parent. So the state before a transaction is known without executing
the ones before it.

Source: https://eips.ethereum.org/EIPS/eip-7928
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, LiteralString, TypeVar

from eth_typing import Address, Hash32

from evm.block_access_list import ListedAccount, decode_access_list
from evm.changes import AccountValue
from evm.signatures import keccak
from evm.tracers.record import unpack
from evm.world import EMPTY_CODE_HASH, NO_ACCOUNT
from nodeapi.chain.replay import Origin, Replay, Start
from nodeapi.documents.receipt_codec import log_count

if TYPE_CHECKING:
    import psycopg

    from evm.world import StateReader

_LIST: LiteralString = """
    SELECT l.list, ARRAY(
        SELECT substring(receipt FROM 1 FOR 5) FROM nodeapi_transactionrecord
        WHERE block_id = b.id AND index < %b
    )
    FROM nodeapi_block b JOIN nodeapi_blockaccesslist l ON l.block_id = b.id
    WHERE b.network_id = %b AND b.hash = %b
"""

T = TypeVar("T")


class ListedState:
    """The state before a transaction: the parent's with the changes of a list."""

    def __init__(
        self,
        before: StateReader,
        accounts: Iterable[ListedAccount],
        index: int,
        *,
        keeps_destroyed: bool,
    ) -> None:
        """Read the changes.

        before: the parent's state. index: of the transaction in its block.
        keeps_destroyed: whether contracts with storage can't be destroyed (EIP-6780).
            Otherwise an account that loses its code has lost its storage, too.
        """
        self._before = before
        self._balances: dict[Address, int] = {}
        self._nonces: dict[Address, int] = {}
        self._code_hashes: dict[Address, Hash32] = {}
        self._storage: dict[Address, dict[int, int]] = {}
        self._wiped: set[Address] = set()
        self._codes: dict[Hash32, bytes] = {}
        for address, storage, _, balances, nonces, codes in accounts:
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
            return before
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
        return 0 if address in self._wiped else self._before.storage(address, slot)

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


@dataclass(slots=True)
class ReplayCounts:
    """Numbers of replays that began within a block, in this process."""

    from_lists: int = 0
    by_execution: int = 0
    """Of blocks without a stored list, and of blocks before EIP-161."""


counts = ReplayCounts()


def replay_before(
    connection: psycopg.Connection[Any],
    network_id: int,
    origin: Origin,
    index: int,
    progress: Callable[[], object] = int,
) -> Replay:
    """Return the execution of a block before one of its transactions.

    The transactions before it are only executed if the block's list is not stored.

    index: of the transaction in its block. progress: called for each one that is executed.
    """
    start = _start(connection, network_id, origin, index) if index else None
    if start is not None:
        counts.from_lists += 1
        return Replay(origin, start=start)
    counts.by_execution += index > 0
    replay = Replay(origin)
    for _ in range(index):
        progress()
        replay.skip()
    return replay


def _start(
    connection: psycopg.Connection[Any], network_id: int, origin: Origin, index: int
) -> Start | None:
    fork = origin.fork
    if not fork.clears_empty_accounts:
        return None  # a list does not say whether an empty account exists
    row = connection.execute(
        _LIST, (index, network_id, origin.block.header.hash), binary=True, prepare=True
    ).fetchone()
    if row is None:
        return None
    accounts = decode_access_list(unpack(row[0]))
    keeps = fork.keeps_destroyed_contracts
    state = ListedState(origin.state, accounts, index, keeps_destroyed=keeps)
    return Start(index, state, sum(map(log_count, row[1])))
