"""Search for flat traces by the accounts of their call frames, for `trace_filter`.

The index of appearances (`nodeapi.chain.appearances`) names the transactions. Their
traces are derived from trace records, and filtered frame by frame.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from evm.blocks import decode_uncles
from evm.headers import decode_header
from evm.rewards import mining_rewards
from evm.tracers.call import read_call
from evm.tracers.details import Details
from evm.tracers.flat_call import FlatCallConfig, Place, flat_entries
from evm.tracers.parties import CALLEE, CALLER, callee
from evm.tracers.record import RecordTooLarge, fill_calls, unpack
from nodeapi.chain.appearances import UNRECORDED, read_places
from nodeapi.errors.blocks import NotCanonical
from nodeapi.errors.traces import TraceTooLarge
from nodeapi.results.entries import reward_trace

if TYPE_CHECKING:
    import psycopg

    from evm.tracers.frames import CallFrame

_INDEX_ROWS = 4096
"""Rows of the index that one query reads, in total for all addresses."""
_MIN_ROWS = 64
"""Rows of the index that one query reads at least for each address."""
_BLOCKS_AT_ONCE = 64

_FLAT = FlatCallConfig(convert_parity_errors=True)

_APPEARANCES = """
    SELECT w.address, a.block_number, a.places, a.is_author
    FROM unnest(%(addresses)s::bytea[]) AS w (address)
    CROSS JOIN LATERAL (
        SELECT block_number, places, is_author FROM nodeapi_appearance
        WHERE network_id = %(network)s AND address = w.address
            AND block_number BETWEEN %(first)s AND %(last)s
        ORDER BY block_number LIMIT %(limit)s
    ) a
    ORDER BY w.address, a.block_number
"""

_TRANSACTIONS = """
    SELECT number, transaction_count FROM nodeapi_block
    WHERE network_id = %s AND is_canonical AND number BETWEEN %s AND %s
    ORDER BY number
"""

_RECORDS = """
    SELECT b.number, b.hash, t.index, t.hash, t.document, r.calls, r.details
    FROM unnest(%s::int8[], %s::int4[]) AS w (number, index)
    JOIN nodeapi_block b
        ON b.network_id = %s AND b.number = w.number AND b.is_canonical
    JOIN nodeapi_transaction t ON t.block_id = b.id AND t.index = w.index
    JOIN nodeapi_transactionrecord r ON r.block_id = b.id AND r.index = w.index
    ORDER BY b.number, t.index
"""

_HEADER = """
    SELECT hash, header, body FROM nodeapi_block
    WHERE network_id = %s AND number = %s AND is_canonical
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceFilter:
    """The accounts, blocks and results of a search.

    first, last: block numbers, both included.
    senders, recipients: accounts; an empty set admits all.
    needs_both: whether a trace needs an admitted sender and an admitted recipient,
        instead of one of the two.
    after: number of matching traces to skip.
    count: maximum number of results, or None.
    """

    first: int
    last: int
    senders: frozenset[bytes] = frozenset()
    recipients: frozenset[bytes] = frozenset()
    needs_both: bool = False
    after: int = 0
    count: int | None = None

    def admits(self, sender: bytes | None, recipient: bytes | None) -> bool:
        """Return whether a trace matches.

        None: the trace has no sender, or no recipient.
        """
        by_sender, by_recipient = sender in self.senders, recipient in self.recipients
        if not self.senders:
            return by_recipient or not self.recipients
        if not self.recipients:
            return by_sender
        if self.needs_both:
            return by_sender and by_recipient
        return by_sender or by_recipient

    def as_json(self) -> dict[str, Any]:
        """Return the filter as a JSON object. Equal filters give equal objects."""
        return {
            "first": self.first,
            "last": self.last,
            "senders": sorted(address.hex() for address in self.senders),
            "recipients": sorted(address.hex() for address in self.recipients),
            "needs_both": self.needs_both,
            "after": self.after,
            "count": self.count,
        }

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> TraceFilter:
        """Return the filter that `as_json` has encoded."""
        addresses = {
            name: frozenset(map(bytes.fromhex, found[name]))
            for name in ("senders", "recipients")
        }
        return cls(**{**found, **addresses})


@dataclass(slots=True)
class _Candidate:
    """A block that may contain matching traces."""

    number: int
    senders: set[int] = field(default_factory=set)
    recipients: set[int] = field(default_factory=set)
    """Indices of transactions with an admitted sender, or an admitted recipient."""
    has_rewards: bool = False
    """Whether an admitted recipient got a mining reward."""

    def transactions(self, wanted: TraceFilter) -> list[int]:
        """Return the indices of transactions that may contain matching traces."""
        if wanted.needs_both and wanted.senders and wanted.recipients:
            return sorted(self.senders & self.recipients)
        return sorted(self.senders | self.recipients)


class _Results:
    """Writes the results that are within the requested page."""

    def __init__(self, wanted: TraceFilter, write: Callable[[bytes], object]) -> None:
        self._skip = wanted.after
        self._left = wanted.count
        self._write = write
        self._separator = b"["

    @property
    def is_full(self) -> bool:
        """Whether no further results are wanted."""
        return self._left == 0

    def add(self, entries: Sequence[bytes]) -> None:
        """Add matching traces, as JSON."""
        skipped = min(self._skip, len(entries))
        self._skip -= skipped
        entries = entries[skipped:]
        if self._left is not None:
            entries = entries[: self._left]
            self._left -= len(entries)
        if entries:
            self._write(self._separator + b",".join(entries))
            self._separator = b","

    def finish(self) -> None:
        """Write the end of the array."""
        self._write(b"[]" if self._separator == b"[" else b"]")


class TraceSearch:
    """A search in the canonical chain, within one snapshot of the database."""

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        network_id: int,
        block_hash: bytes,
        wanted: TraceFilter,
    ) -> None:
        """Prepare a search.

        block_hash: of the canonical block `wanted.last`, by which the result may be
            cached.
        """
        self._connection = connection
        self._network_id = network_id
        self._block_hash = block_hash
        self._wanted = wanted
        self._config: dict[str, Any] | None = None

    def run(self, write: Callable[[bytes], object]) -> None:
        """Write the matching traces as a JSON array.

        Raises: NotCanonical; TraceTooLarge; ValueError if a trace record is damaged.
        """
        self._require_canonical()
        results = _Results(self._wanted, write)
        candidates = self._candidates()
        while not results.is_full:
            part = list(islice(candidates, _BLOCKS_AT_ONCE))
            if not part:
                break
            self._search(part, results)
        results.finish()

    def _require_canonical(self) -> None:
        """Raise NotCanonical if the block `wanted.last` is not canonical any more."""
        found = self._connection.execute(
            "SELECT 1 FROM nodeapi_block"
            " WHERE network_id = %s AND hash = %s AND is_canonical",
            (self._network_id, self._block_hash),
        ).fetchone()
        if found is None:
            raise NotCanonical

    # Which transactions

    def _candidates(self) -> Iterator[_Candidate]:
        """Yield the blocks that may contain matching traces, in ascending order."""
        wanted = self._wanted
        if not wanted.senders and not wanted.recipients:
            yield from self._all_blocks()
            return
        first = wanted.first
        while first <= wanted.last:
            found, until = self._appearances(first)
            yield from (found[number] for number in sorted(found))
            first = until + 1

    def _all_blocks(self) -> Iterator[_Candidate]:
        wanted = self._wanted
        rows = self._connection.execute(
            _TRANSACTIONS, (self._network_id, wanted.first, wanted.last)
        ).fetchall()
        for number, count in rows:
            yield _Candidate(number, set(range(count)), has_rewards=number > 0)

    def _appearances(self, first: int) -> tuple[dict[int, _Candidate], int]:
        """Return the next candidates by number, and the last block that they cover."""
        wanted = self._wanted
        addresses = [UNRECORDED, *wanted.senders | wanted.recipients]
        limit = max(_INDEX_ROWS // len(addresses), _MIN_ROWS)
        rows = self._connection.execute(
            _APPEARANCES,
            {
                "addresses": addresses,
                "network": self._network_id,
                "first": first,
                "last": wanted.last,
                "limit": limit,
            },
            binary=True,
        )
        until, found = wanted.last, dict[int, _Candidate]()
        for address, group in groupby(rows, itemgetter(0)):
            count = number = 0
            for _, number, places, is_author in group:
                count += 1
                candidate = found.setdefault(number, _Candidate(number))
                self._take(candidate, address, places, is_author)
            if count == limit:
                until = min(until, number)  # the address may have further rows above
        return {n: block for n, block in found.items() if n <= until}, until

    def _take(
        self, candidate: _Candidate, address: bytes, places: bytes, is_author: bool
    ) -> None:
        """Add a row of the index to a candidate."""
        wanted = self._wanted
        is_any = address == UNRECORDED
        is_sender = is_any or address in wanted.senders
        is_recipient = is_any or address in wanted.recipients
        for index, roles in read_places(places):
            if is_sender and roles & CALLER:
                candidate.senders.add(index)
            if is_recipient and roles & CALLEE:
                candidate.recipients.add(index)
        if is_author and wanted.admits(None, address):
            candidate.has_rewards = True

    # Their traces

    def _search(self, part: Sequence[_Candidate], results: _Results) -> None:
        """Add the matching traces of some candidates."""
        places = {block.number: block.transactions(self._wanted) for block in part}
        numbers = [number for number, found in places.items() for _ in found]
        indexes = [index for found in places.values() for index in found]
        # Fetch few rows at a time, because one row may take most of the memory.
        with self._connection.cursor(name="records", binary=True) as cursor:
            cursor.itersize = 16
            cursor.execute(_RECORDS, (numbers, indexes, self._network_id))
            blocks = groupby(cursor, itemgetter(0))
            for block in part:
                if results.is_full:
                    return
                if places[block.number]:
                    _, rows = next(blocks)
                    self._search_block(rows, results)
                if block.has_rewards:
                    results.add(self._rewards(block.number))

    def _search_block(
        self,
        rows: Iterable[tuple[Any, ...]],
        results: _Results,
    ) -> None:
        for number, block_hash, index, name, document, calls, details in rows:
            if results.is_full:
                return
            place = Place(block_hash, number, name, index)
            try:
                results.add(self._matching(place, document, calls, details))
            except RecordTooLarge as error:
                raise TraceTooLarge(index) from error
            except ValueError as error:
                error.add_note(f"records of transaction {index} of block {number}")
                raise

    def _matching(
        self, place: Place, document: bytes, calls: bytes, details: bytes
    ) -> list[bytes]:
        """Return the matching traces of a transaction, as JSON."""
        top = read_call(fill_calls(calls, document))
        precompiles = Details(unpack(details)).precompiles
        entries = flat_entries(top, _FLAT, precompiles, place, self._is_wanted)
        return [entry.encode() for entry in entries]

    def _is_wanted(self, frame: CallFrame) -> bool:
        return self._wanted.admits(frame.sender, callee(frame))

    def _rewards(self, number: int) -> list[bytes]:
        """Return the matching rewards of a block, as JSON."""
        row = self._connection.execute(
            _HEADER, (self._network_id, number), binary=True
        ).fetchone()
        assert row is not None, "the snapshot contains the block"
        block_hash, header, body = row
        rewards = mining_rewards(
            decode_header(header), decode_uncles(body), self._genesis_config()
        )
        return [
            reward_trace(reward, block_hash, number)
            for reward in rewards
            if self._wanted.admits(None, reward.author)
        ]

    def _genesis_config(self) -> dict[str, Any]:
        if self._config is None:
            row = self._connection.execute(
                "SELECT genesis -> 'config' FROM networks_network WHERE id = %s",
                (self._network_id,),
            ).fetchone()
            self._config = dict(row[0]) if row is not None else {}
        return self._config
