"""Proved values as rows of the checkpoint's block.

What no block has written since the checkpoint has the same value from it to the head. So a
proof against the state root of any canonical block since then gives the value at the
checkpoint, unless a block between them has written it. The statements check that in the
database, so that readers may store values while blocks are imported: a value that was
written in the meantime is not stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, LiteralString

from evm.proved_state import Keys
from evm.world import EMPTY_CODE_HASH

if TYPE_CHECKING:
    import psycopg
    from eth_typing import Hash32

    from evm.proof_nodes import NodeRows
    from evm.proved_state import ProvedValues

_ANCHOR: LiteralString = (
    "SELECT FROM nodeapi_block WHERE network_id = %(network)b"
    " AND hash = %(anchor)b AND is_canonical FOR KEY SHARE"
)
"""The deletion of a network begins with its blocks. So it waits for values in flight, and
no later ones are stored."""
# All statements insert in the order of their keys, so that no two wait for each other.
CODES: LiteralString = (
    "INSERT INTO nodeapi_code (hash, code)"
    " SELECT * FROM unnest(%(hashes)b::bytea[], %(codes)b::bytea[])"
    " AS proved (hash, code) ORDER BY hash ON CONFLICT DO NOTHING"
)
ACCOUNTS: LiteralString = (
    "INSERT INTO nodeapi_accountversion"
    " (network_id, address, block_number, nonce, balance, code_hash, storage_root)"
    " SELECT network.id, address, checkpoint_number, nonce, balance, code_hash,"
    " storage_root FROM networks_network AS network,"
    " unnest(%(addresses)b::bytea[], %(nonces)b::numeric[], %(balances)b::numeric[],"
    " %(code_hashes)b::bytea[], %(storage_roots)b::bytea[])"
    " AS proved (address, nonce, balance, code_hash, storage_root)"
    " WHERE network.id = %(network)b AND EXISTS (" + _ANCHOR + ") AND NOT EXISTS ("
    "SELECT FROM nodeapi_accountversion AS written WHERE network_id = network.id"
    " AND written.address = proved.address AND block_number > checkpoint_number"
    " AND block_number <= %(number)b"
    ") ORDER BY address ON CONFLICT DO NOTHING"
)
SLOTS: LiteralString = (
    "INSERT INTO nodeapi_storageversion"
    " (network_id, address, slot, block_number, value)"
    " SELECT network.id, address, slot, checkpoint_number, value"
    " FROM networks_network AS network,"
    " unnest(%(addresses)b::bytea[], %(slots)b::bytea[], %(values)b::bytea[])"
    " AS proved (address, slot, value)"
    " WHERE network.id = %(network)b AND EXISTS (" + _ANCHOR + ") AND NOT EXISTS ("
    "SELECT FROM nodeapi_storageversion AS written WHERE network_id = network.id"
    " AND written.address = proved.address AND written.slot = proved.slot"
    " AND block_number > checkpoint_number AND block_number <= %(number)b"
    ") ORDER BY address, slot ON CONFLICT DO NOTHING"
)
NODES: LiteralString = (
    "INSERT INTO nodeapi_trienode (network_id, owner, path, node)"
    " SELECT %(network)b, * FROM"
    " unnest(%(owners)b::bytea[], %(paths)b::bytea[], %(nodes)b::bytea[])"
    " ON CONFLICT DO NOTHING"
)


class NoProof(Exception):
    """Raised when no upstream proves values or sends trie nodes that are needed.

    reason: without URLs. keys: the accounts and slots that are not proved, if known.
    """

    def __init__(self, reason: str, keys: Keys | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.keys = Keys() if keys is None else keys


@dataclass(frozen=True, slots=True)
class Anchor:
    """A canonical block, at or above the checkpoint, against whose state is proved."""

    number: int
    hash: Hash32
    state_root: Hash32


Statement = tuple[LiteralString, dict[str, Any]]
"""A query, and its parameters."""


def insertions(
    network_id: int, anchor: Anchor, values: ProvedValues
) -> list[Statement]:
    """Return the statements that store values, in an order that fits each transaction.

    Code comes before the accounts that have it.
    """
    common = {"network": network_id, "anchor": anchor.hash, "number": anchor.number}
    statements: list[Statement] = []
    if values.codes:
        codes = values.codes
        statements.append((CODES, {"hashes": [*codes], "codes": [*codes.values()]}))
    if values.accounts:
        found = values.accounts.values()
        statements.append(
            (
                ACCOUNTS,
                common
                | {
                    "addresses": [*values.accounts],
                    "nonces": [each and each.nonce for each in found],
                    "balances": [each and each.balance for each in found],
                    "code_hashes": [
                        each and _unless(each.code_hash, EMPTY_CODE_HASH)
                        for each in found
                    ],
                    "storage_roots": [each and each.storage_root for each in found],
                },
            )
        )
    if values.slots:
        statements.append(
            (
                SLOTS,
                common
                | {
                    "addresses": [address for address, _ in values.slots],
                    "slots": [slot.to_bytes(32) for _, slot in values.slots],
                    "values": [_minimal(each) for each in values.slots.values()],
                },
            )
        )
    return statements


def head_anchor(connection: psycopg.Connection[Any], network_id: int) -> Anchor:
    """Return the head of a network that has blocks."""
    row = connection.execute(
        "SELECT number, hash, state_root FROM nodeapi_block WHERE (network_id, hash) ="
        " (SELECT id, head_hash FROM networks_network WHERE id = %b)",
        (network_id,),
        binary=True,
        prepare=True,
    ).fetchone()
    assert row is not None
    return Anchor(*row)


def anchor_at(
    connection: psycopg.Connection[Any], network_id: int, number: int
) -> Anchor | None:
    """Return a canonical block since the checkpoint by its number."""
    row = connection.execute(
        "SELECT block.number, hash, state_root FROM nodeapi_block AS block"
        " JOIN networks_network AS network ON network.id = network_id"
        " WHERE network_id = %b AND block.number = %b AND is_canonical"
        " AND block.number >= checkpoint_number",
        (network_id, number),
        binary=True,
        prepare=True,
    ).fetchone()
    return None if row is None else Anchor(*row)


def insert_values(
    connection: psycopg.Connection[Any],
    network_id: int,
    anchor: Anchor,
    values: ProvedValues,
) -> None:
    """Store values, in one transaction."""
    with connection.transaction():
        for query, parameters in insertions(network_id, anchor, values):
            connection.execute(query, parameters, binary=True, prepare=True)


def insert_nodes(
    connection: psycopg.Connection[Any], network_id: int, rows: NodeRows
) -> None:
    """Store nodes of the head's tries that were unknown. Only the importer may do it."""
    places = [
        (o, path, node) for o, found in rows.items() for path, node in found.items()
    ]
    if places:
        owners, paths, nodes = map(list, zip(*places, strict=True))
        connection.execute(
            NODES,
            {"network": network_id, "owners": owners, "paths": paths, "nodes": nodes},
            binary=True,
            prepare=True,
        )


def _unless(value: bytes, default: bytes) -> bytes | None:
    return None if value == default else value


def _minimal(value: int) -> bytes:
    """Return the big-endian bytes of a value, without leading zeros."""
    return value.to_bytes((value.bit_length() + 7) // 8)
