"""Reads of the result of eth_syncing."""

from __future__ import annotations

from jsonrpc.later import Later
from nodeapi.encoding import quantity
from nodeapi.store.base import Reads, Sources, whole_row
from postgres.lookup import Lookup
from postgres.statement import INT8, Row, read_bool, read_int8

BEHIND_BLOCKS = 3
"""A network is behind if its upstreams have more than this number of blocks above the head.
Fewer can be missing for a moment after each new block."""

SILENT_SECONDS = 30
"""A network is also behind if its follower has reported nothing for this time."""

_STATUS = f"""
    SELECT k.n, n.head_number, f.starting_number, f.best_number,
        f.updated_at > now() - interval '{SILENT_SECONDS} seconds', n.is_preparing
    FROM k JOIN networks_network n ON n.id = k.network_id
    LEFT JOIN nodeapi_followerstatus f ON f.network_id = k.network_id
    WHERE n.head_number IS NOT NULL AND (f.network_id IS NOT NULL OR n.is_preparing)
"""

_ZERO_MEMBERS = (
    *("syncedAccounts", "syncedAccountBytes", "syncedBytecodes"),
    *("syncedBytecodeBytes", "syncedStorage", "syncedStorageBytes"),
    *("healedTrienodes", "healedTrienodeBytes", "healedBytecodes"),
    *("healedBytecodeBytes", "healingTrienodes", "healingBytecode"),
    *("syncedAccessLists", "totalAccessLists", "trieGenProgress"),
    *("txIndexFinishedBlocks", "txIndexRemainingBlocks", "stateIndexRemaining"),
    "trienodeIndexRemaining",
)
"""Members of geth's object that are always zero, because they are about snap sync.

Source: go-ethereum v1.17.10, internal/ethapi/api.go, Syncing
"""


class FollowingReads(Reads):
    """Reads of the status that a network's follower writes."""

    def __init__(self, sources: Sources) -> None:
        super().__init__(sources)
        self._statuses: Lookup[tuple[int], Row] = Lookup(
            sources.connections, _STATUS, [("network_id", INT8)], whole_row
        )

    def syncing(self, network_id: int) -> Later[bytes]:
        """Return geth's object while a network is behind its upstreams, else `false`.

        A network is behind if it is preparing, if more than BEHIND_BLOCKS are missing, if
        no upstream responds, or if its follower is silent. Otherwise it is not behind if
        it was never followed. Fails with Unavailable.
        """
        return Later.from_future(self._statuses.get((network_id,))).then(_syncing)


def _syncing(row: Row | None) -> bytes:
    if row is None or row[0] is None:
        return b"false"
    head, starting, best = (
        None if each is None else read_int8(each) for each in row[:3]
    )
    assert head is not None
    is_reporting = row[3] is not None and read_bool(row[3])
    is_preparing = row[4] is not None and read_bool(row[4])
    if (
        is_reporting
        and not is_preparing
        and best is not None
        and best <= head + BEHIND_BLOCKS
    ):
        return b"false"
    known = {
        "startingBlock": head if starting is None else starting,
        "currentBlock": head,
        "highestBlock": max(head, best or 0),
        **dict.fromkeys(_ZERO_MEMBERS, 0),
    }
    members = [b'"%s":%s' % (name.encode(), quantity(n)) for name, n in known.items()]
    return b"{" + b",".join(members) + b"}"
