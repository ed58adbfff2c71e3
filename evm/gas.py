"""The gas that a frame or a transaction has left, in two dimensions.

Execution gas pays for everything. State gas pays for what remains in the state, from
Amsterdam on: it is taken from a reservoir, and when that is empty, from the execution
gas.

Source: https://eips.ethereum.org/EIPS/eip-8037; go-ethereum, core/vm/gascosts.go
"""

from __future__ import annotations

from typing import Protocol

from evm.frame_errors import OutOfGas


class GasUsed(Protocol):
    """What a transaction has used."""

    @property
    def gas_used(self) -> int:
        """What the sender pays for, after the refund."""

    @property
    def execution_gas(self) -> int:
        """What counts for the limit of the block. Up to Osaka, it is the gas used."""

    @property
    def state_gas(self) -> int:
        """The same in the second dimension."""


class GasMeter:
    """Gas that is left, and the state gas that was used."""

    gas_remaining: int
    """Execution gas. The instruction GAS and the 63/64 of calls see only this."""
    reservoir: int = 0
    """State gas that is left. A call is given all of it."""
    state_gas_used: int = 0
    """Without what failed calls used. It is negative within a frame that clears slots of
    its callers."""
    spilled: int = 0
    """Execution gas that paid for state gas. It is 0 unless the reservoir is empty."""

    def charge(self, gas: int) -> None:
        """Charge execution gas. Raises: OutOfGas if less is left."""
        remaining = self.gas_remaining - gas
        if remaining < 0:
            raise OutOfGas
        self.gas_remaining = remaining

    def charge_state(self, gas: int) -> None:
        """Charge state gas. Raises: OutOfGas if less is left."""
        spilled = gas - self.reservoir
        if spilled > 0:
            self.charge(spilled)
            self.spilled += spilled
            self.reservoir = 0
        else:
            self.reservoir -= gas
        self.state_gas_used += gas

    def return_state(self, gas: int) -> None:
        """Return state gas that was charged, first to the execution gas that paid for it."""
        repaid = min(gas, self.spilled)
        self.gas_remaining += repaid
        self.spilled -= repaid
        self.reservoir += gas - repaid
        self.state_gas_used -= gas

    def return_all_state(self) -> None:
        """Return all state gas that was charged, because its changes are undone."""
        self.gas_remaining += self.spilled
        self.reservoir += self.state_gas_used - self.spilled
        self.state_gas_used = self.spilled = 0

    def absorb_state(self, ended: GasMeter) -> None:
        """Take over the state gas of a call that was given the whole reservoir."""
        self.state_gas_used += ended.state_gas_used
        spilled = self.spilled + ended.spilled
        # The call may have returned what this frame had spilled.
        repaid = min(ended.reservoir, spilled)
        self.gas_remaining += repaid
        self.spilled = spilled - repaid
        self.reservoir = ended.reservoir - repaid
