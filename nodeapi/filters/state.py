"""The state of a filter, and its JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import orjson

LOGS = "logs"
BLOCKS = "blocks"
PENDING = "pending"


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterState:
    """A filter's criteria, and the last block or transaction that was read.

    kind: LOGS, BLOCKS or PENDING.
    criteria: the argument of eth_newFilter, for LOGS.
    number, block_hash: the newest block that was read (`0x…`), for LOGS and BLOCKS.
        number is the id of the newest transaction of the local pool, for PENDING.
    is_full: whether transaction objects are returned instead of hashes, for PENDING.
    upstream_id, upstream_filter: the filter at an upstream, for PENDING. None: there is
        none yet.
    unread: hashes that the upstream has reported, but that no answer had room for.
    """

    network_id: int
    kind: str
    criteria: dict[str, Any] | None = None
    number: int = 0
    block_hash: str = ""
    is_full: bool = False
    upstream_id: int | None = None
    upstream_filter: str | None = None
    unread: Sequence[str] = ()

    def encode(self) -> bytes:
        """Return the state as JSON."""
        return orjson.dumps(asdict(self))

    @classmethod
    def decode(cls, document: bytes) -> FilterState:
        """Return the state of a result of `encode`."""
        return cls(**orjson.loads(document))
