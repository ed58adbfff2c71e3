"""The forkchoice: a head, and the safe and finalized blocks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import orjson
from eth_typing import Hash32

if TYPE_CHECKING:
    from collections.abc import Mapping

    import psycopg

_ZERO_HASH = Hash32(bytes(32))


class ForkchoiceMismatch(ValueError):
    """Raised if the safe or finalized block can't be stored with the wanted head.

    The safe or finalized block is neither the head nor an ancestor of the head, or the
    finalized block would move back.
    """


class BelowFinalized(ValueError):
    """Raised if a block does not descend from the stored finalized block."""


class UnknownHead(LookupError):
    """Raised if the wanted head is not stored."""


class MoveKind(StrEnum):
    """The change of the canonical chain by one `FollowingImporter.follow`."""

    NONE = "none"
    EXTENSION = "extension"
    REORGANISATION = "reorganisation"
    REWIND = "rewind"
    """Blocks were demoted, and none was added: the head is an ancestor of the old one."""


@dataclass(frozen=True, slots=True)
class Move:
    """The change of the canonical chain by one `FollowingImporter.follow`."""

    kind: MoveKind
    depth: int
    """Number of blocks that became side blocks."""
    added: int
    """Number of blocks that became canonical since the previous `follow`."""

    @classmethod
    def of(cls, depth: int, added: int) -> Move:
        """Return the move that demotes `depth` blocks and adds `added` blocks."""
        if depth:
            kind = MoveKind.REORGANISATION if added else MoveKind.REWIND
        else:
            kind = MoveKind.EXTENSION if added else MoveKind.NONE
        return cls(kind, depth, added)


@dataclass(frozen=True, slots=True)
class Forkchoice:
    """The desired head, and the safe and finalized blocks."""

    head: Hash32
    safe: Hash32 | None
    finalized: Hash32 | None


def parse_forkchoice(text: str) -> Forkchoice:
    """Parse an `engine_forkchoiceUpdated` request, or only its forkchoice state.

    Raises: ValueError. The message names the missing member.

    Source: execution-apis, `ForkchoiceStateV1`. A zero hash stands for no block.
    """
    try:
        document = orjson.loads(text)
        state = document["params"][0] if "params" in document else document
        hashes = [
            Hash32(bytes.fromhex(state[name].removeprefix("0x")))
            for name in ("headBlockHash", "safeBlockHash", "finalizedBlockHash")
        ]
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise ValueError(
            "a forkchoice must have headBlockHash, safeBlockHash and finalizedBlockHash"
        ) from error
    if any(len(block_hash) != 32 for block_hash in hashes):
        raise ValueError("a block hash must have 32 bytes")
    head, safe, finalized = hashes
    return Forkchoice(
        head,
        None if safe == _ZERO_HASH else safe,
        None if finalized == _ZERO_HASH else finalized,
    )


def forget_demoted(connection: psycopg.Connection[Any], network_id: int) -> None:
    """Remove the safe and finalized tags of blocks that are no longer canonical."""
    for column in ("safe_hash", "finalized_hash"):
        connection.execute(
            f"UPDATE networks_network AS network SET {column} = NULL"
            " FROM nodeapi_block AS block WHERE network.id = %b"
            " AND block.network_id = network.id"
            f" AND block.hash = network.{column} AND NOT block.is_canonical",
            (network_id,),
        )


def set_forkchoice(
    connection: psycopg.Connection[Any], network_id: int, forkchoice: Forkchoice
) -> None:
    """Store the safe and finalized blocks of a network.

    The forkchoice's head has to be stored and canonical.

    Raises: ForkchoiceMismatch if a block is not an ancestor of the head.
    """
    named = {"safe": forkchoice.safe, "finalized": forkchoice.finalized}
    for name, block_hash in named.items():
        if block_hash is None:
            continue
        found = connection.execute(
            "SELECT 1 FROM nodeapi_block"
            " WHERE network_id = %b AND hash = %b AND is_canonical",
            (network_id, block_hash),
        )
        if found.fetchone() is None:
            raise ForkchoiceMismatch(_not_on_chain(name, block_hash, forkchoice.head))
    connection.execute(
        "UPDATE networks_network SET safe_hash = %b, finalized_hash = %b WHERE id = %b",
        (forkchoice.safe, forkchoice.finalized, network_id),
    )


@dataclass(frozen=True, slots=True)
class Tags:
    """The stored safe and finalized blocks of a network."""

    safe: Hash32 | None
    finalized: Hash32 | None
    finalized_number: int
    """0 if no block is finalized, because block 0 is never reverted."""

    @classmethod
    def stored(cls, connection: psycopg.Connection[Any], network_id: int) -> Tags:
        """Read the tags of a network."""
        row = connection.execute(
            "SELECT safe_hash, finalized_hash, block.number"
            " FROM networks_network AS network LEFT JOIN nodeapi_block AS block"
            " ON block.network_id = network.id AND block.hash = finalized_hash"
            " WHERE network.id = %b",
            (network_id,),
            binary=True,
        ).fetchone()
        if row is None:
            raise LookupError(f"no network {network_id}")
        safe, finalized, number = row
        return cls(safe, finalized, number or 0)

    def require_above_finalized(self, fork_number: int, block_hash: Hash32) -> None:
        """Raise BelowFinalized if a block's fork point is below the finalized block."""
        if fork_number < self.finalized_number:
            raise BelowFinalized(
                f"block 0x{block_hash.hex()} leaves the chain at block {fork_number}, "
                f"below the finalized block {self.finalized_number}"
            )


def admitted(
    connection: psycopg.Connection[Any],
    network_id: int,
    forkchoice: Forkchoice,
    fork_number: int,
    line: Mapping[Hash32, int],
) -> Forkchoice:
    """Check a move of the head before it is made, and return the forkchoice to store.

    A forkchoice without finalized block keeps the stored one.

    fork_number: number of the newest canonical block that remains canonical.
    line: hash → number of the blocks above it, up to the wanted head.

    Raises: BelowFinalized, ForkchoiceMismatch.
    """
    tags = Tags.stored(connection, network_id)
    tags.require_above_finalized(fork_number, forkchoice.head)

    def number(name: str, block_hash: Hash32) -> int:
        if block_hash in line:
            return line[block_hash]
        row = connection.execute(
            "SELECT number FROM nodeapi_block WHERE network_id = %b AND hash = %b"
            " AND is_canonical AND number <= %b",
            (network_id, block_hash, fork_number),
        ).fetchone()
        if row is None:
            raise ForkchoiceMismatch(_not_on_chain(name, block_hash, forkchoice.head))
        return int(row[0])

    if forkchoice.safe is not None:
        number("safe", forkchoice.safe)
    if forkchoice.finalized is None:
        return replace(forkchoice, finalized=tags.finalized)
    finalized = number("finalized", forkchoice.finalized)
    if finalized < tags.finalized_number:
        raise ForkchoiceMismatch(
            f"the finalized block would move back from {tags.finalized_number} to "
            f"{finalized}"
        )
    return forkchoice


def _not_on_chain(name: str, block_hash: Hash32, head: Hash32) -> str:
    return (
        f"the {name} block 0x{block_hash.hex()} is not on the chain of the "
        f"head 0x{head.hex()}"
    )
