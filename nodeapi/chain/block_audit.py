"""Audit of blocks: they are executed again from the rows, by one of two engines.

The results are compared with the headers and with the stored receipts. All inputs are
rows: headers, bodies, hashes of ancestors, and the flat history of accounts and slots.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from eth_typing import Hash32

from evm.errors import InvalidBlock
from evm.execution import Outcome, execute_block
from evm.receipts import Receipt
from evm.state_roots import StateRoots
from evm.trie import CorruptTrieNode, MissingTrieNode
from evm.world import World
from nodeapi.chain.audit import AuditFailure
from nodeapi.chain.branch import StateMismatch
from nodeapi.chain.replay import NotTraceable, Origin, find_origin
from nodeapi.chain.trie_at import trie_at
from nodeapi.chain.verification import computed_fields, mismatch
from nodeapi.documents.receipts import parse_receipt, receipt_document

if TYPE_CHECKING:
    import psycopg

    from evm.chain_config import ChainConfig
    from evm.headers import Header
    from evm.state_trie import StateTrie

Engine = Callable[[Origin, "StateTrie"], tuple[Outcome, Hash32]]
"""Executes a block, and returns the outcome and the state root. The trie is at the parent's
state, and is moved to the block's. Raises: InvalidBlock."""

_ALL_CHANGES = 2**40
"""An audit may undo any number of changes to compute the tries of its first block."""


def execute(origin: Origin, trie: StateTrie) -> tuple[Outcome, Hash32]:
    """Execute a block by this project's rules: the engine `own`."""
    world = World(origin.state)
    roots = StateRoots(
        world,
        origin.state,
        trie,
        clears_empty_accounts=origin.fork.clears_empty_accounts,
    )
    outcome = execute_block(
        origin.block, origin.fork, origin.config, world, origin.ancestor_hashes, roots
    )
    return outcome, roots()


def audit_blocks(
    connection: psycopg.Connection[Any],
    network_id: int,
    config: ChainConfig,
    numbers: range,
    engine: Engine,
) -> Iterator[Origin]:
    """Execute canonical blocks again. Yield each one that the rows and headers agree with.

    The connection should have a consistent snapshot (REPEATABLE READ). numbers: from 1.

    Raises: AuditFailure, with the block and all differences, at the first block that
        differs; and what the engine raises for rules that it does not have.
    """
    trie: StateTrie | None = None
    for number in numbers:
        row = connection.execute(
            "SELECT id, hash, parent_hash FROM nodeapi_block"
            " WHERE network_id = %b AND number = %b AND is_canonical",
            (network_id, number),
            binary=True,
        ).fetchone()
        if row is None:
            raise AuditFailure(f"there is no block {number}")
        block_id, block_hash, parent_hash = row
        try:
            origin = find_origin(connection, network_id, config, block_hash)
            if trie is None:
                trie = trie_at(
                    connection, network_id, parent_hash, max_changes=_ALL_CHANGES
                )
            stored = _stored_receipts(connection, block_id)
            outcome, root = engine(origin, trie)
        except InvalidBlock as error:
            raise AuditFailure(f"block {number}: {error.summary}") from error
        except (
            *(StateMismatch, MissingTrieNode, CorruptTrieNode, NotTraceable),
            *(LookupError, ValueError),  # rows that are missing or damaged
        ) as error:
            raise AuditFailure(f"block {number}: {error}") from error
        different = [
            *_wrong_receipts(stored, outcome.receipts),
            *_wrong_fields(origin.block.header, outcome, root),
        ]
        if different:
            lines = (f"block {number}: {difference}" for difference in different)
            raise AuditFailure("\n".join(lines))
        yield origin


def _stored_receipts(
    connection: psycopg.Connection[Any], block_id: int
) -> list[Receipt]:
    rows = connection.execute(
        "SELECT receipt, document FROM nodeapi_transactionrecord"
        " JOIN nodeapi_transaction USING (block_id, index)"
        " WHERE block_id = %b ORDER BY index",
        (block_id,),
        binary=True,
    ).fetchall()
    return [parse_receipt(receipt_document(*row)) for row in rows]


def _wrong_receipts(stored: list[Receipt], found: list[Receipt]) -> Iterator[str]:
    """Yield what the stored receipts have, and the executed ones have not."""
    if len(stored) != len(found):
        yield f"{len(stored)} receipts are stored, not {len(found)}"
    for index, pair in enumerate(zip(stored, found, strict=False)):
        for field in fields(Receipt):
            values = [getattr(receipt, field.name) for receipt in pair]
            if field.name == "logs":
                values = [list(logs) for logs in values]
            yield from _difference(
                f"{field.name.replace('_', ' ')} of transaction {index}", *values
            )


def _wrong_fields(header: Header, outcome: Outcome, root: Hash32) -> Iterator[str]:
    """Yield the fields of a header that the execution does not confirm."""
    for field, promised, found in (
        *computed_fields(header, outcome),
        ("state root", header.state_root, root),
    ):
        if promised != found:
            yield mismatch(header, field, promised, found).summary


def _difference(field: str, stored: object, computed: object) -> Iterator[str]:
    if stored != computed:
        yield f"{field} is {_shown(stored)}, but executing gives {_shown(computed)}"


def _shown(value: object) -> object:
    return f"0x{value.hex()}" if isinstance(value, bytes) else value
