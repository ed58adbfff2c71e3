"""Arguments of calls, between JSON and Python."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BlockReference:
    """A block parameter: exactly one of tag, number and hash is given.

    tag: latest, earliest, pending, safe or finalized.
    hash: 32 bytes; with require_canonical a side block is refused.
    Source: https://eips.ethereum.org/EIPS/eip-1898
    """

    tag: str | None = None
    number: int | None = None
    hash: bytes | None = None
    require_canonical: bool = False
