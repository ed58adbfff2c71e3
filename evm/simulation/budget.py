"""The gas that a simulation may use.

Source: go-ethereum internal/ethapi/simulate.go, `gasBudget`
"""

from __future__ import annotations

UNLIMITED_GAS = 2**64 - 1


class GasBudget:
    """Counts the gas of all calls of a simulation together."""

    def __init__(self, gas_cap: int) -> None:
        """gas_cap: gas of all calls; 0: no limit."""
        self._gas_cap = gas_cap or UNLIMITED_GAS
        self.gas_used = 0

    @property
    def gas_left(self) -> int:
        """The gas that the following calls may use."""
        return max(0, self._gas_cap - self.gas_used)
