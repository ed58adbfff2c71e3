"""The index of appearances: which accounts take part in which transactions' call frames.

It is derived from trace records and headers. The importer writes it in the commit of a
block; a reorganisation removes the rows of the blocks that it demotes, and derives those
of the blocks that it promotes.

Sources: "appearance" is TrueBlocks' term, https://trueblocks.io/docs/
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from struct import Struct
from typing import TYPE_CHECKING, Any

from evm.blocks import decode_uncles
from evm.headers import decode_header
from evm.tracers.call import read_call
from evm.tracers.details import Details
from evm.tracers.parties import CALLEE, CALLER, CREATED, parties
from evm.tracers.record import RecordTooLarge, fill_calls, unpack

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import psycopg

    from evm.headers import Header
    from nodeapi.chain.rows import BlockRow

UNRECORDED = b""
"""Address in the rows of transactions without a complete record. Means all accounts."""

BLOCKS_AT_ONCE = 16
"""Number of stored blocks whose rows are created at once."""

_PLACE = Struct("!I")
_ROLE_BITS = 4

_CALLS = b'"calls":['
_ENDS = re.compile(rb'"from":"0x([0-9a-f]{40})","to":(?:null|"0x([0-9a-f]{40})")')


@dataclass(slots=True)
class Appearances:
    """One account's appearances in one block, a row of the index."""

    places: bytearray = field(default_factory=bytearray)
    """Transactions with the account's roles; see `read_places`."""
    is_creation: bool = False
    is_author: bool = False

    def add(self, index: int, roles: int) -> None:
        """Add a transaction. Transactions are added in ascending order of their indexes."""
        self.places += _PLACE.pack(index << _ROLE_BITS | roles)
        if roles & CREATED:
            self.is_creation = True


Recorded = tuple[bytes, bytes, bytes]
"""A transaction's packed `calls` and `details`, and its JSON document."""


def read_places(places: bytes) -> Iterator[tuple[int, int]]:
    """Yield index and roles of each transaction of a row, in ascending order.

    roles: of `evm.tracers.parties`, combined with `|`.
    """
    for (place,) in _PLACE.iter_unpack(places):
        yield place >> _ROLE_BITS, place & (1 << _ROLE_BITS) - 1


def block_appearances(
    transactions: Iterable[Recorded], header: Header, body: bytes
) -> dict[bytes, Appearances]:
    """Return the appearances in a block, by address.

    transactions: all transactions of the block, in order. body: as `encode_body` returns
    it.
    """
    found: dict[bytes, Appearances] = {}
    for index, recorded in enumerate(transactions):
        for address, roles in _roles(*recorded).items():
            row = found.get(address)
            if row is None:
                row = found[address] = Appearances()
            row.add(index, roles)
    for author in _reward_authors(header, body):
        found.setdefault(author, Appearances()).is_author = True
    return found


def _roles(calls: bytes, details: bytes, document: bytes) -> dict[bytes, int]:
    """Return the roles of the accounts in a transaction's call frames, by address."""
    try:
        recipient = _ENDS.search(document)
        if recipient is None:
            raise ValueError("this is no transaction object")
        sender, to = recipient.groups()
        text = unpack(calls)
        if to is not None and _CALLS not in text:
            return _ends(sender, to)  # most transactions, without parsing their calls
        top = read_call(fill_calls(calls, document))
        return parties(top, Details(unpack(details)).precompiles)
    except RecordTooLarge:
        everyone = {UNRECORDED: CALLER | CALLEE}
        return everyone | _ends(sender, to)


def _ends(sender: bytes, to: bytes | None) -> dict[bytes, int]:
    """Return the roles of sender and recipient of a transaction that makes no calls."""
    if to is None:
        return {bytes.fromhex(sender.decode()): CALLER}
    if sender == to:
        return {bytes.fromhex(sender.decode()): CALLER | CALLEE}
    return {
        bytes.fromhex(sender.decode()): CALLER,
        bytes.fromhex(to.decode()): CALLEE,
    }


def _reward_authors(header: Header, body: bytes) -> list[bytes]:
    """Return the accounts that got mining rewards: the miners of block and uncles."""
    if header.difficulty == 0 or header.number == 0:
        return []
    return [header.coinbase, *(uncle.coinbase for uncle in decode_uncles(body))]


class AppearanceRows:
    """Writes the index of appearances of one network."""

    def __init__(self, connection: psycopg.Connection[Any], network_id: int) -> None:
        self._connection = connection
        self._network_id = network_id

    def insert(self, blocks: Iterable[BlockRow]) -> None:
        """Insert the appearances in new canonical blocks."""
        self._insert(map(_of_row, blocks))

    def remove_above(self, number: int) -> None:
        """Remove the appearances in all blocks above a number."""
        self._connection.execute(
            "DELETE FROM nodeapi_appearance WHERE network_id = %b AND block_number > %b",
            (self._network_id, number),
        )

    def insert_stored(self, block_ids: Sequence[int]) -> None:
        """Insert the appearances in stored blocks, from their trace records.

        Raises: ValueError if a trace record is damaged.
        """
        for start in range(0, len(block_ids), BLOCKS_AT_ONCE):
            part = block_ids[start : start + BLOCKS_AT_ONCE]
            self._insert(list(self._stored(part)))

    def _stored(
        self, block_ids: Sequence[int]
    ) -> Iterator[tuple[int, dict[bytes, Appearances]]]:
        """Yield number and appearances of stored blocks."""
        blocks = self._connection.execute(
            "SELECT id, number, header, body FROM nodeapi_block WHERE id = ANY(%b)",
            (list(block_ids),),
            binary=True,
        ).fetchall()
        found = self._connection.execute(
            "SELECT r.block_id, r.calls, r.details, t.document"
            " FROM nodeapi_transactionrecord r JOIN nodeapi_transaction t"
            " ON t.block_id = r.block_id AND t.index = r.index"
            " WHERE r.block_id = ANY(%b) ORDER BY r.block_id, r.index",
            (list(block_ids),),
            binary=True,
        )
        recorded: dict[int, list[Recorded]] = {
            block_id: [
                (calls, details, document) for _, calls, details, document in rows
            ]
            for block_id, rows in groupby(found, itemgetter(0))
        }
        for block_id, number, header, body in blocks:
            transactions = recorded.get(block_id, [])
            yield number, block_appearances(transactions, decode_header(header), body)

    def _insert(self, blocks: Iterable[tuple[int, dict[bytes, Appearances]]]) -> None:
        with (
            self._connection.cursor() as cursor,
            cursor.copy(
                "COPY nodeapi_appearance (network_id, address, block_number, places,"
                " is_creation, is_author) FROM STDIN (FORMAT BINARY)"
            ) as copy,
        ):
            copy.set_types(["int8", "bytea", "int8", "bytea", "bool", "bool"])
            for number, found in blocks:
                for address, row in found.items():
                    copy.write_row(
                        (
                            self._network_id,
                            address,
                            number,
                            row.places,
                            row.is_creation,
                            row.is_author,
                        )
                    )


def _of_row(block: BlockRow) -> tuple[int, dict[bytes, Appearances]]:
    """Return number and appearances of a block that is being inserted."""
    header = decode_header(block.header)
    return block.number, block_appearances(_recorded(block), header, block.body)


def _recorded(block: BlockRow) -> Iterator[Recorded]:
    for (_, document), (_, record) in zip(
        block.transactions, block.records, strict=True
    ):
        yield record.calls, record.details, document
