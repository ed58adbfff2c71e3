"""Fees of blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from jsonrpc.later import Later
from networks.directory import NetworkView


@dataclass(frozen=True, slots=True)
class HeadFees:
    """Fees in wei per gas, as of the head. None before the fork that introduced them."""

    base_fee: int | None
    next_base_fee: int | None
    """Of the block after the head."""
    blob_fee: int | None


class Fees(Protocol):
    """Reads the fees of blocks, and suggests a tip."""

    def suggested_tip(self, network_id: int) -> Later[int]:
        """Return a tip, in wei per gas, with which transactions are soon included."""

    def head_fees(self, network_id: int) -> Later[HeadFees]:
        """Return the fees of the head and of the block after it."""

    async def fee_history(
        self, view: NetworkView, first: int, last: int, percentiles: Sequence[float]
    ) -> bytes | None:
        """Return the result of eth_feeHistory for canonical blocks, as JSON.

        first, last: numbers of existing blocks. The number after the head's stands for
            the pending block, which has no transactions here.
        percentiles: in ascending order, weighted by gas used. If empty, rewards are
            omitted.
        Returns: None if the blocks have been removed since.
        """
