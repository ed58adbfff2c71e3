"""Former versions of trie nodes, for proofs at older blocks of networks that keep them.

A row contains a node as it was before a block that changed it. The node after block N is
therefore that of the oldest row above N, and without such a row the stored node. Rows are
complete from the oldest one on: they are written in the commit of each block while the
network keeps them, and otherwise all are deleted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, LiteralString

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    import psycopg

    from evm.changes import Changes
    from evm.state_trie import DirtyNodes, StateTrie

PRUNED_AT_ONCE = 64
"""Blocks whose rows are deleted together when they leave the window."""

_NODES_AT: LiteralString = (
    "SELECT asked.path, CASE WHEN later.is_found THEN later.node ELSE ("
    "SELECT node FROM nodeapi_trienode WHERE network_id = %(network)b"
    " AND owner = %(owner)b AND path = asked.path) END"
    " FROM unnest(%(paths)b::bytea[]) AS asked (path) LEFT JOIN LATERAL ("
    "SELECT true AS is_found, node FROM nodeapi_trienodeversion"
    " WHERE network_id = %(network)b AND owner = %(owner)b AND path = asked.path"
    " AND block_number > %(number)b ORDER BY block_number LIMIT 1"
    ") AS later ON true"
)


class NodesAt:
    """Reader of the trie nodes after a canonical block.

    For a block before the oldest row, it returns nodes of later states.
    """

    def __init__(
        self, connection: psycopg.Connection[Any], network_id: int, number: int
    ) -> None:
        self._connection = connection
        self._network_id = network_id
        self._number = number

    def nodes(
        self, owner: bytes, paths: Collection[bytes], likely: Collection[bytes] = ()
    ) -> Mapping[bytes, bytes]:
        """Return the nodes of one trie at these paths. Absent nodes are omitted."""
        rows = self._connection.execute(
            _NODES_AT,
            {
                "network": self._network_id,
                "owner": owner,
                "paths": list({*paths, *likely}),
                "number": self._number,
            },
            binary=True,
            prepare=True,
        )
        return {path: node for path, node in rows.fetchall() if node is not None}


@dataclass(frozen=True, slots=True)
class Window:
    """The blocks whose nodes are kept.

    blocks: their number, below the head; None: all blocks.
    has_versions: whether the network has versions of any block.
    """

    blocks: int | None = 0
    has_versions: bool = False

    @property
    def is_open(self) -> bool:
        """Whether versions of further blocks are kept."""
        return self.blocks != 0


CLOSED = Window()
"""The window of a network that keeps no versions."""


class NodeVersions:
    """Writes the versions of one network's nodes, in the caller's transaction."""

    def __init__(self, connection: psycopg.Connection[Any], network_id: int) -> None:
        self._connection = connection
        self._network_id = network_id

    def window(self) -> Window:
        """Return the blocks for which the network keeps versions."""
        row = self._connection.execute(
            "SELECT keep_proofs, EXISTS (SELECT FROM nodeapi_trienodeversion AS version"
            " WHERE version.network_id = network.id)"
            " FROM networks_network AS network WHERE id = %b",
            (self._network_id,),
            prepare=True,
        ).fetchone()
        return CLOSED if row is None else Window(*row)

    def insert(
        self,
        steps: Iterable[tuple[int, DirtyNodes]],
        before: Mapping[bytes, Mapping[bytes, bytes | None]] | None = None,
    ) -> None:
        """Insert the versions of nodes that blocks change, before nodes are replaced.

        steps: block number and changed nodes of consecutive blocks.
        before: nodes before the first of these blocks, as far as they differ from the
            stored ones.
        """
        known: dict[tuple[bytes, bytes], bytes | None] = {
            (owner, path): node
            for owner, rows in (before or {}).items()
            for path, node in rows.items()
        }
        for number, changed in steps:
            places = [(owner, path) for owner in changed for path in changed[owner]]
            self._insert_stored(
                number, [place for place in places if place not in known]
            )
            self._insert_known(
                number, {place: known[place] for place in places if place in known}
            )
            for owner, path in places:
                known[owner, path] = changed[owner][path]

    def write(
        self,
        window: Window,
        steps: Sequence[tuple[int, DirtyNodes]],
        last: int,
    ) -> None:
        """Insert the versions of blocks, and delete those that leave the window.

        If the window is not open, all versions are deleted.

        last: number of the last block.
        """
        if not window.is_open:
            if window.has_versions:
                self.clear()
            return
        self.insert(steps)
        if window.blocks is not None:
            first = steps[0][0]
            if first // PRUNED_AT_ONCE != (last + 1) // PRUNED_AT_ONCE:
                self.prune(last - window.blocks)

    def delete_above(self, number: int) -> None:
        """Delete the versions that blocks above a number have replaced."""
        self._connection.execute(
            "DELETE FROM nodeapi_trienodeversion"
            " WHERE network_id = %b AND block_number > %b",
            (self._network_id, number),
        )

    def prune(self, number: int) -> None:
        """Delete the versions that the blocks up to a number have replaced."""
        self._connection.execute(
            "DELETE FROM nodeapi_trienodeversion"
            " WHERE network_id = %b AND block_number <= %b",
            (self._network_id, number),
        )

    def clear(self) -> None:
        """Delete all versions of the network."""
        self._connection.execute(
            "DELETE FROM nodeapi_trienodeversion WHERE network_id = %b",
            (self._network_id,),
        )

    def _insert_stored(self, number: int, places: list[tuple[bytes, bytes]]) -> None:
        """Insert stored nodes as the versions before a block."""
        if places:
            self._connection.execute(
                "INSERT INTO nodeapi_trienodeversion"
                " (network_id, owner, path, block_number, node)"
                " SELECT %(network)b, row.owner, row.path, %(number)b, stored.node"
                " FROM unnest(%(owners)b::bytea[], %(paths)b::bytea[])"
                " AS row (owner, path) LEFT JOIN LATERAL ("
                "SELECT node FROM nodeapi_trienode WHERE network_id = %(network)b"
                " AND owner = row.owner AND path = row.path LIMIT 1) AS stored ON true",
                {
                    "network": self._network_id,
                    "number": number,
                    "owners": [owner for owner, _ in places],
                    "paths": [path for _, path in places],
                },
            )

    def _insert_known(
        self, number: int, nodes: Mapping[tuple[bytes, bytes], bytes | None]
    ) -> None:
        """Insert given nodes as the versions before a block."""
        if nodes:
            with self._connection.cursor().copy(
                "COPY nodeapi_trienodeversion (network_id, owner, path, block_number,"
                " node) FROM STDIN (FORMAT BINARY)"
            ) as copy:
                copy.set_types(["int8", "bytea", "bytea", "int8", "bytea"])
                for (owner, path), node in nodes.items():
                    copy.write_row((self._network_id, owner, path, number, node))


def steps_of(
    trie: StateTrie, blocks: Iterable[tuple[int, Changes]]
) -> Iterable[tuple[int, DirtyNodes]]:
    """Apply the changes of blocks to tries, and yield the nodes that each changes."""
    former = _copied(trie.dirty_nodes())
    for number, changes in blocks:
        trie.apply(changes)
        present = _copied(trie.dirty_nodes())
        yield (
            number,
            {
                owner: {
                    path: node
                    for path, node in rows.items()
                    if path not in former.get(owner, {}) or former[owner][path] != node
                }
                for owner, rows in present.items()
            },
        )
        former = present


def _copied(nodes: DirtyNodes) -> DirtyNodes:
    return {owner: dict(rows) for owner, rows in nodes.items()}
