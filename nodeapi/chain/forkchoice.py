"""The head that a consensus client would choose, given by hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson
from eth_typing import Hash32

if TYPE_CHECKING:
    import psycopg

_ZERO_HASH = Hash32(bytes(32))


class ForkchoiceMismatch(ValueError):
    """Raised for a safe or finalized block that is not on the wanted head's chain."""


@dataclass(frozen=True, slots=True)
class Forkchoice:
    """The wanted head, and the blocks that count as safe and finalized."""

    head: Hash32
    safe: Hash32 | None
    finalized: Hash32 | None


def parse_forkchoice(text: str) -> Forkchoice:
    """Return the forkchoice of an `engine_forkchoiceUpdated` request, or its state alone.

    Raises: ValueError saying what is missing.
    Source: execution-apis, `ForkchoiceStateV1`; a zero hash stands for none.
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
            "a forkchoice has headBlockHash, safeBlockHash and finalizedBlockHash"
        ) from error
    if any(len(block_hash) != 32 for block_hash in hashes):
        raise ValueError("a block hash has 32 bytes")
    head, safe, finalized = hashes
    return Forkchoice(
        head,
        None if safe == _ZERO_HASH else safe,
        None if finalized == _ZERO_HASH else finalized,
    )


def forget_demoted(connection: psycopg.Connection[Any], network_id: int) -> None:
    """Have the head count as safe and finalized where the block is canonical no more."""
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
    """Write down which blocks count as safe and finalized on a network.

    The wanted head is there, and its chain the canonical one.
    Raises: ForkchoiceMismatch.
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
            raise ForkchoiceMismatch(
                f"the {name} block 0x{block_hash.hex()} is not on the chain of the "
                f"head 0x{forkchoice.head.hex()}"
            )
    connection.execute(
        "UPDATE networks_network SET safe_hash = %b, finalized_hash = %b WHERE id = %b",
        (forkchoice.safe, forkchoice.finalized, network_id),
    )
