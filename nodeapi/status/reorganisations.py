"""Recent reorganisations of a network, with the blocks of both branches."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from evm.hexadecimal import to_hex
from networks.models import Network
from nodeapi.models import Reorganisation
from nodeapi.status.block_states import State, Tags

SHOWN = 10
"""Maximum number of reorganisations on a page. The newest ones are shown."""

MAX_BLOCKS = 8
"""Maximum number of blocks that are shown of each branch. The newest ones are shown."""

_LINES = """
    WITH RECURSIVE line AS (
        SELECT hash AS tip, number, hash, parent_hash, is_canonical, 1 AS length
        FROM nodeapi_block WHERE network_id = %(network)s AND hash = ANY(%(tips)s)
        UNION ALL
        SELECT line.tip, parent.number, parent.hash, parent.parent_hash,
            parent.is_canonical, line.length + 1
        FROM line JOIN nodeapi_block parent
            ON parent.network_id = %(network)s AND parent.hash = line.parent_hash
        WHERE line.length < %(length)s
    )
    SELECT tip, number, hash, is_canonical FROM line
"""


@dataclass(frozen=True, slots=True)
class BranchBlock:
    """A stored block of a branch, with its present state."""

    number: int
    hash: str
    state: State


@dataclass(frozen=True, slots=True)
class Height:
    """The blocks of both branches at one height. None if a branch has no block there."""

    number: int
    old: BranchBlock | None
    new: BranchBlock | None

    @property
    def both(self) -> tuple[BranchBlock | None, BranchBlock | None]:
        """The blocks in the order of the table's columns."""
        return self.old, self.new


@dataclass(frozen=True, slots=True)
class ReorganisationLine:
    """A reorganisation, formatted for a page."""

    pk: int
    at: datetime
    fork_number: int
    """Number of the last block that both branches share."""
    replaced: int
    """Blocks that ceased to be canonical."""
    added: int
    """Blocks that became canonical."""
    old_hash: str
    """Hash of the head before."""
    new_hash: str
    """Hash of the head afterwards."""
    heights: list[Height]
    """The highest first."""
    hidden: int
    """Number of blocks that are not shown: older blocks, and deleted side blocks."""


def newest_reorganisation(network: Network) -> int | None:
    """Return the id of the network's newest reorganisation, or None."""
    found = Reorganisation.objects.filter(network=network).order_by("-at", "-id")
    return found.values_list("pk", flat=True).first()


def recent_reorganisations(
    network: Network, tags: Tags, most: int = SHOWN
) -> list[ReorganisationLine]:
    """Return the newest reorganisations of a network, the newest first."""
    found = list(
        Reorganisation.objects.filter(network=network).order_by("-at", "-id")[:most]
    )
    tips = {bytes(tip) for one in found for tip in (one.old_hash, one.new_hash)}
    branches = _branches(network, tags, tips)
    return [_line(one, branches) for one in found]


def _branches(
    network: Network, tags: Tags, tips: Collection[bytes]
) -> dict[bytes, dict[int, BranchBlock]]:
    """Return the last MAX_BLOCKS blocks up to each tip, by number."""
    branches: dict[bytes, dict[int, BranchBlock]] = {tip: {} for tip in tips}
    if not tips:
        return branches
    wanted: dict[str, Any] = {
        "network": network.pk,
        "tips": list(tips),
        "length": MAX_BLOCKS,
    }
    with connection.cursor() as cursor:
        cursor.execute(_LINES, wanted)
        for tip, number, block_hash, is_canonical in cursor:
            branches[bytes(tip)][number] = BranchBlock(
                number=number,
                hash=to_hex(block_hash),
                state=tags.state(number, is_canonical=is_canonical),
            )
    return branches


def _line(
    one: Reorganisation, branches: dict[bytes, dict[int, BranchBlock]]
) -> ReorganisationLine:
    old_hash, new_hash = bytes(one.old_hash), bytes(one.new_hash)
    old, new = (
        {
            number: block
            for number, block in branches[tip].items()
            if number > one.fork_number
        }
        for tip in (old_hash, new_hash)
    )
    return ReorganisationLine(
        pk=one.pk,
        at=one.at,
        fork_number=one.fork_number,
        replaced=one.depth,
        added=one.added,
        old_hash=f"0x{old_hash.hex()}",
        new_hash=f"0x{new_hash.hex()}",
        heights=[
            Height(number, old.get(number), new.get(number))
            for number in sorted(old.keys() | new.keys(), reverse=True)
        ],
        hidden=max(0, one.depth + one.added - len(old) - len(new)),
    )
