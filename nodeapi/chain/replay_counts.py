"""How often replays have begun within a block, in this process. Loads no EVM."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class ReplayCounts:
    """Numbers of replays that began within a block, in this process."""

    from_lists: int = 0
    by_execution: int = 0
    """Of blocks without a stored list, and of blocks before EIP-161."""
    missing: int = 0
    """Those of `from_lists` in whose list a value was missing, so that the transactions
    before were executed after all."""

    def __add__(self, more: ReplayCounts) -> ReplayCounts:
        """Return the sums of the numbers."""
        return ReplayCounts(
            self.from_lists + more.from_lists,
            self.by_execution + more.by_execution,
            self.missing + more.missing,
        )


counts = ReplayCounts()
