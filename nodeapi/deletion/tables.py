"""The tables with rows of a network, and the deletion of batches of rows.

The tables follow from the models: every model with a foreign key to `Network` is one.
Blocks and upstreams have rows of further tables, which are deleted with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from django.db import models
from psycopg.sql import SQL, Composable, Identifier

from evm.hexadecimal import to_hex
from networks.models import Network, NetworkDeletion, Upstream
from nodeapi.models import (
    Block,
    BlockAccessList,
    SideDiff,
    Transaction,
    TransactionRecord,
    UpstreamStatus,
)

if TYPE_CHECKING:
    import psycopg

BATCH_ROWS = 5_000
"""Maximum number of rows that a batch deletes. A block with more transactions is one
batch."""

WINDOW_ROWS = 20_000
"""Number of rows, of all networks, that a batch examines in a table without an index
that begins with the network."""

_BLOCKS_READ = 1_000
"""Maximum number of blocks that a batch considers."""

OF_BLOCKS = (TransactionRecord, Transaction, BlockAccessList, SideDiff)
"""Models that refer to a block by `block_id`, and are deleted with it."""

_OWN = (NetworkDeletion, Block, Upstream)
"""Models that are not handled by their foreign key alone."""

Key = list[Any]
"""A row's key as JSON: integers, and bytes as hexadecimal with 0x."""


@dataclass(frozen=True, slots=True)
class Batch:
    """A deleted batch.

    deleted: number of rows by table. after: key of the last row; None: the table has no
    more rows of the network.
    """

    deleted: Mapping[str, int]
    after: Key | None


class Rows(Protocol):
    """A table's rows of a network."""

    @property
    def model(self) -> type[models.Model]:
        """The model of the table."""

    @property
    def clears(self) -> bool:
        """Whether rows are kept without their reference to the network."""

    @property
    def counting(self) -> Composable:
        """A query with a row for each row of the network %(network)s."""

    def delete(
        self, connection: psycopg.Connection[Any], network_id: int, after: Key | None
    ) -> Batch:
        """Delete a batch after the row with a key, within a transaction."""


@dataclass(frozen=True, slots=True)
class Keyed:
    """Rows whose primary key begins with the network. keys: its further columns."""

    model: type[models.Model]
    column: str
    keys: tuple[str, ...]
    clears: bool = False

    @property
    def counting(self) -> Composable:
        """The query of `Rows.counting` for these rows."""
        return _counting(self.model, self.column)

    def delete(
        self, connection: psycopg.Connection[Any], network_id: int, after: Key | None
    ) -> Batch:
        """Delete a batch of these rows; see `Rows.delete`."""
        table, column = _table(self.model), Identifier(self.column)
        if not self.keys:  # the network has at most one row
            statement = SQL("DELETE FROM {} WHERE {} = %s").format(table, column)
            gone = connection.execute(statement, (network_id,)).rowcount
            return Batch({self.model._meta.db_table: gone}, None)
        columns = SQL(", ").join(map(Identifier, self.keys))
        values: list[Any] = [network_id]
        beyond: Composable = SQL("")
        if after is not None:
            places = SQL(", ").join([SQL("%s")] * len(after))
            beyond = SQL(" AND ({}, {}) > (%s, {})").format(column, columns, places)
            values += [network_id, *map(_from_json, after)]
        # By position, because a join with the batch could be planned as a scan.
        statement = SQL(
            "WITH batch AS MATERIALIZED (SELECT ctid AS place, {columns} FROM {table}"
            " WHERE {column} = %s{beyond} ORDER BY {column}, {columns} LIMIT %s),"
            " gone AS (DELETE FROM {table}"
            " WHERE ctid = ANY (ARRAY(SELECT place FROM batch)) RETURNING 1)"
            " SELECT (SELECT count(*) FROM gone), (SELECT count(*) FROM batch),"
            " {columns} FROM batch ORDER BY {last} LIMIT 1"
        ).format(
            columns=columns,
            table=table,
            column=column,
            beyond=beyond,
            last=SQL(", ").join(
                SQL("{} DESC").format(Identifier(key)) for key in self.keys
            ),
        )
        row = connection.execute(statement, (*values, BATCH_ROWS)).fetchone()
        if row is None:
            return Batch({}, None)
        gone, found, *last = row
        is_last = found < BATCH_ROWS
        return Batch(
            {self.model._meta.db_table: gone},
            None if is_last else [_to_json(value) for value in last],
        )


@dataclass(frozen=True, slots=True)
class Numbered:
    """Rows with a number as primary key. All rows of the table are examined.

    column: of the network. key: the primary key.
    children: models of further rows, each with the column that refers to these rows.
    """

    model: type[models.Model]
    column: str
    key: str
    clears: bool = False
    children: tuple[tuple[type[models.Model], str], ...] = ()

    @property
    def counting(self) -> Composable:
        """The query of `Rows.counting` for these rows."""
        return _counting(self.model, self.column)

    def delete(
        self, connection: psycopg.Connection[Any], network_id: int, after: Key | None
    ) -> Batch:
        """Delete a batch of these rows; see `Rows.delete`."""
        table, column = _table(self.model), Identifier(self.column)
        key, start = Identifier(self.key), after[0] if after else -1
        window = SQL(
            "SELECT max({key}), count(*) FROM (SELECT {key} FROM {table}"
            " WHERE {key} > %s ORDER BY {key} LIMIT %s) AS examined"
        ).format(key=key, table=table)
        row = connection.execute(window, (start, WINDOW_ROWS)).fetchone()
        end, found = row or (None, 0)
        if end is None:
            return Batch({}, None)
        values = (start, end, network_id)
        where = SQL("WHERE {} > %s AND {} <= %s AND {} = %s").format(key, key, column)
        deleted = {}
        for child, parent in self.children:
            statement = SQL("DELETE FROM {} WHERE {} IN (SELECT {} FROM {} {})").format(
                _table(child), Identifier(parent), key, table, where
            )
            gone = connection.execute(statement, values).rowcount
            deleted[child._meta.db_table] = gone
        change = SQL("UPDATE {} SET {} = NULL" if self.clears else "DELETE FROM {}")
        statement = SQL("{} {}").format(
            change.format(table, column) if self.clears else change.format(table), where
        )
        gone = connection.execute(statement, values).rowcount
        deleted[self.model._meta.db_table] = gone
        return Batch(deleted, [end] if found == WINDOW_ROWS else None)


@dataclass(frozen=True, slots=True)
class OfBlocks:
    """Blocks with their transactions, trace records, access lists and diffs.

    They are deleted together, because triggers refuse a block without its records.
    """

    model: type[models.Model] = Block
    clears: bool = False

    @property
    def counting(self) -> Composable:
        """The query of `Rows.counting` for these rows."""
        return _counting(Block, "network_id")

    def delete(
        self, connection: psycopg.Connection[Any], network_id: int, after: Key | None
    ) -> Batch:
        """Delete a batch of blocks, in the order of their numbers; see `Rows.delete`."""
        found = connection.execute(
            "SELECT id, number, transaction_count FROM nodeapi_block"
            " WHERE network_id = %s AND number >= %s ORDER BY number LIMIT %s",
            (network_id, after[0] if after else 0, _BLOCKS_READ),
        ).fetchall()
        rows, ids, last = 0, [], 0
        for block_id, number, count in found:
            ids.append(block_id)
            rows, last = rows + 1 + count, number
            if rows >= BATCH_ROWS:
                break
        deleted = {}
        for model in OF_BLOCKS:
            statement = SQL("DELETE FROM {} WHERE block_id = ANY (%s)")
            gone = connection.execute(statement.format(_table(model)), (ids,))
            deleted[model._meta.db_table] = gone.rowcount
        gone = connection.execute(
            "DELETE FROM nodeapi_block WHERE id = ANY (%s)", (ids,)
        )
        deleted[Block._meta.db_table] = gone.rowcount
        return Batch(deleted, [last] if ids else None)


@dataclass(frozen=True, slots=True)
class Children:
    """Rows that refer to a network's rows of another table, with which they are deleted.

    column: refers to the primary key of `parent`.
    """

    model: type[models.Model]
    column: str
    parent: type[models.Model]
    clears: bool = False

    @property
    def counting(self) -> Composable:
        """The query of `Rows.counting` for these rows."""
        return SQL(
            "SELECT 1 FROM {} AS one JOIN {} AS parent ON parent.id = one.{}"
            " WHERE parent.network_id = %(network)s"
        ).format(_table(self.model), _table(self.parent), Identifier(self.column))

    def delete(
        self, connection: psycopg.Connection[Any], network_id: int, after: Key | None
    ) -> Batch:
        """Delete nothing, because the rows were deleted with their parents."""
        return Batch({}, None)


@dataclass(frozen=True, slots=True)
class Upstreams:
    """Upstreams with their statuses, 16 at most."""

    model: type[models.Model] = Upstream
    clears: bool = False

    @property
    def counting(self) -> Composable:
        """The query of `Rows.counting` for these rows."""
        return _counting(Upstream, "network_id")

    def delete(
        self, connection: psycopg.Connection[Any], network_id: int, after: Key | None
    ) -> Batch:
        """Delete a batch of these rows; see `Rows.delete`."""
        connection.execute(
            SQL(
                "DELETE FROM {} WHERE upstream_id IN (SELECT id FROM {}"
                " WHERE network_id = %s)"
            ).format(_table(UpstreamStatus), _table(Upstream)),
            (network_id,),
        )
        gone = connection.execute(
            SQL("DELETE FROM {} WHERE network_id = %s").format(_table(Upstream)),
            (network_id,),
        )
        return Batch({Upstream._meta.db_table: gone.rowcount}, None)


def all_rows() -> list[Rows]:
    """Return the rows of a network in all tables, in the order of their deletion."""
    referring = list(_referring())
    return [
        OfBlocks(),
        *(Children(model, "block_id", Block) for model in OF_BLOCKS),
        *referring,
        *(
            Children(model, column, rows.model)
            for rows in referring
            if isinstance(rows, Numbered)
            for model, column in rows.children
        ),
        Upstreams(),
    ]


def _referring() -> Iterator[Rows]:
    """Yield the rows that refer to the network by a foreign key."""
    fields = sorted(
        (
            relation.field
            for relation in Network._meta.get_fields(include_hidden=True)
            if isinstance(relation, models.ManyToOneRel)
            and relation.related_model not in _OWN
        ),
        key=lambda field: str(field.model._meta.db_table),
    )
    for field in fields:
        model = field.model
        keys = tuple(str(each.column) for each in _primary_key(model))
        column = str(field.column)
        clears = field.remote_field.on_delete is models.SET_NULL
        if keys[0] == column:
            yield Keyed(model, column, keys[1:], clears)
        else:
            (key,) = keys
            children = () if clears else tuple(_children(model))
            yield Numbered(model, column, key, clears, children)


def _children(model: type[models.Model]) -> Iterator[tuple[type[models.Model], str]]:
    """Yield the models that refer to a model, with the referring columns."""
    for relation in model._meta.get_fields(include_hidden=True):
        if isinstance(relation, models.ManyToOneRel):
            yield relation.field.model, str(relation.field.column)


def _primary_key(model: type[models.Model]) -> Sequence[Any]:
    return model._meta.pk_fields


def _counting(model: type[models.Model], column: str) -> Composable:
    return SQL("SELECT 1 FROM {} WHERE {} = %(network)s").format(
        _table(model), Identifier(column)
    )


def _table(model: type[models.Model]) -> Identifier:
    return Identifier(model._meta.db_table)


def _to_json(value: Any) -> Any:
    return to_hex(value) if isinstance(value, bytes | memoryview) else value


def _from_json(value: Any) -> Any:
    return bytes.fromhex(value[2:]) if isinstance(value, str) else value
