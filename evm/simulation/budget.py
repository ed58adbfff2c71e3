"""The gas and the time that a simulation may use.

Source: go-ethereum internal/ethapi/simulate.go, `gasBudget`
"""

from __future__ import annotations

import time

from evm.simulation.errors import SERVER_ERROR, SimulationError

UNLIMITED_GAS = 2**64 - 1


class Budget:
    """Counts the gas and checks the time of all calls of a simulation together."""

    def __init__(self, gas_cap: int, timeout: float) -> None:
        """gas_cap: gas of all calls; 0: no limit. timeout: seconds from now."""
        self._gas_cap = gas_cap or UNLIMITED_GAS
        self._timeout = timeout
        self._deadline = time.monotonic() + timeout
        self.gas_used = 0

    @property
    def gas_left(self) -> int:
        """The gas that the following calls may use."""
        return max(0, self._gas_cap - self.gas_used)

    def check_time(self) -> None:
        """Raise SimulationError after the deadline."""
        if time.monotonic() > self._deadline:
            raise SimulationError(
                SERVER_ERROR, f"execution aborted (timeout = {self._timeout:g}s)"
            )
