"""Verification of the rows of a sparse state: sampled ones are proved again.

The state root can't be computed from the rows of a network that started at a checkpoint,
because they hold a part of the state only. What they hold at the newest block is compared
with fresh proofs. Unknown values are no damage.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any, LiteralString

from eth_typing import Address, Hash32

from evm.proved_state import Keys
from evm.trie_nodes import EMPTY_ROOT
from nodeapi.chain.audit import AuditFailure
from nodeapi.chain.state_reader import StoredState
from nodeapi.proofs.fetch import fetch
from nodeapi.proofs.values import Anchor, NoProof

if TYPE_CHECKING:
    from collections.abc import Sequence

    import psycopg

    from evm.changes import AccountValue
    from evm.proved_state import ProvedValues
    from nodeapi.upstreams.client import UpstreamClient

BATCH_ROWS = 256
"""Accounts and slots that are proved together."""

BLOCKS_BACK = (0, 4, 32, 96)
"""Blocks below the head whose state is asked for, one after the other: upstreams may lag
behind, and they have the state of some 128 blocks."""

_ACCOUNT: LiteralString = (
    "SELECT address FROM nodeapi_accountversion WHERE network_id = %b"
    " AND address >= %b AND block_number <= %b ORDER BY address LIMIT 1"
)
_OWNER: LiteralString = (
    "SELECT address FROM nodeapi_storageversion WHERE network_id = %b"
    " AND address >= %b AND block_number <= %b ORDER BY address LIMIT 1"
)
_SLOT: LiteralString = (
    "SELECT slot FROM nodeapi_storageversion WHERE network_id = %b AND address = %b"
    " AND slot >= %b AND block_number <= %b ORDER BY slot LIMIT 1"
)
_ANCHOR: LiteralString = (
    "SELECT b.number, b.hash, b.state_root"
    " FROM networks_network AS w JOIN nodeapi_block AS b"
    " ON b.network_id = w.id AND b.is_canonical AND b.number = w.head_number - %b"
    " WHERE w.id = %b AND b.number >= w.checkpoint_number"
)


async def audit_sparse(
    connection: psycopg.Connection[Any],
    network_id: int,
    clients: Sequence[UpstreamClient],
    sample: int,
) -> tuple[int, int]:
    """Compare random accounts and slots with fresh proofs.

    sample: number of rows to choose; a row may be chosen more than once.

    Return the number of compared values, and that of the newest block compared with.

    Raises: AuditFailure for a wrong row; NoProof; LookupError without blocks.
    """
    count, number = 0, 0
    while sample > 0:
        keys, anchor, proved = await _proved(
            connection, network_id, clients, min(sample, BATCH_ROWS)
        )
        _compare(StoredState(connection, network_id, anchor.number), anchor, proved)
        sample -= BATCH_ROWS
        count += len(keys)
        number = anchor.number
    return count, number


async def _proved(
    connection: psycopg.Connection[Any],
    network_id: int,
    clients: Sequence[UpstreamClient],
    sample: int,
) -> tuple[Keys, Anchor, ProvedValues]:
    """Choose keys, and prove their values at the newest block that an upstream has."""
    failure: NoProof | None = None
    for back in BLOCKS_BACK:
        row = connection.execute(_ANCHOR, (back, network_id), binary=True).fetchone()
        if row is None:
            break
        anchor = Anchor(row[0], Hash32(row[1]), Hash32(row[2]))
        keys = _choose(connection, network_id, anchor.number, sample)
        try:
            return keys, anchor, (await fetch(clients, anchor, keys)).values
        except NoProof as error:
            failure = failure or error
    if failure is None:
        raise LookupError("the network has no blocks since its checkpoint")
    raise failure


def _choose(
    connection: psycopg.Connection[Any], network_id: int, number: int, sample: int
) -> Keys:
    """Return known accounts and slots of the state after a block, half of each."""
    keys = Keys()
    for place in range(sample):
        query = _OWNER if place % 2 else _ACCOUNT
        address = _next(connection, query, network_id, secrets.token_bytes(20), number)
        if address is None:
            continue
        if query is _ACCOUNT:
            keys.accounts.add(Address(address))
            continue
        row = None
        for least in (secrets.token_bytes(32), bytes(32)):
            row = connection.execute(
                _SLOT, (network_id, address, least, number), binary=True, prepare=True
            ).fetchone()
            if row is not None:
                break
        if row is not None:
            keys.slots.add((Address(address), int.from_bytes(row[0])))
    return keys


def _next(
    connection: psycopg.Connection[Any],
    query: LiteralString,
    network_id: int,
    least: bytes,
    number: int,
) -> bytes | None:
    """Return the first address from one on, beginning again after the last one."""
    for start in (least, b""):
        row = connection.execute(
            query, (network_id, start, number), binary=True, prepare=True
        ).fetchone()
        if row is not None:
            return bytes(row[0])
    return None


def _compare(state: StoredState, anchor: Anchor, proved: ProvedValues) -> None:
    """Raise AuditFailure for the first value that differs from the proved one."""
    accounts = state.accounts(proved.accounts)
    for address, account in proved.accounts.items():
        if _plain(accounts[address]) != _plain(account):
            raise AuditFailure(
                f"block {anchor.number}: the row of 0x{address.hex()} has "
                f"{accounts[address]}, but the state has {account}"
            )
    slots = state.slots(proved.slots)
    for key, value in proved.slots.items():
        if slots[key] != value:
            address, slot = key
            raise AuditFailure(
                f"block {anchor.number}: the row of slot {slot:#x} of "
                f"0x{address.hex()} has {slots[key]:#x}, but the state has {value:#x}"
            )


def _plain(account: AccountValue | None) -> AccountValue | None:
    """Return an account with None for the storage root of an empty trie."""
    if account is None or account.storage_root != EMPTY_ROOT:
        return account
    return account._replace(storage_root=None)
