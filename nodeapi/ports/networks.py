"""Properties of a network: its fork schedule, the data that it keeps, its progress."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from jsonrpc.later import Later

if TYPE_CHECKING:
    from evm.chain_config import ChainConfig


@dataclass(frozen=True, slots=True)
class KeptData:
    """The oldest blocks with certain data, by number.

    oldest_logs: the logs of this block and of all later ones are indexed.
    oldest_proof: eth_getProof works for this block and all later ones.
    proof_blocks: number of blocks below the head for which former trie nodes are kept;
        None: there is no such limit, because none or all are kept.
    """

    oldest_logs: int
    oldest_proof: int
    proof_blocks: int | None


class Networks(Protocol):
    """Reads a network's forks, its kept data and its progress."""

    def chain_config(self, network_id: int) -> Later[ChainConfig]:
        """Return a network's fork schedule."""

    def genesis_config(self, network_id: int) -> Later[Mapping[str, Any]]:
        """Return the `config` of a network's genesis.json, which schedules its forks."""

    async def kept_data(self, network_id: int) -> KeptData:
        """Return the oldest blocks for which a network has logs and proofs."""

    def syncing(self, network_id: int) -> Later[bytes]:
        """Return geth's object while a network is behind its upstreams, else `false`."""
