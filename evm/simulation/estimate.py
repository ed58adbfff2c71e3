"""The least gas limit with which a call succeeds.

Source: go-ethereum v1.17.10, eth/gasestimator/gasestimator.go
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from evm.checks import (
    FUNDS_TEXT,
    INTRINSIC_GAS,
    TRANSFER_TEXT,
    CallRejected,
)
from evm.frame_errors import OUT_OF_GAS
from evm.simulation.call import LIMITED_CALL, CallResult, execute_call
from evm.transactions import CREATE_ADDRESS

if TYPE_CHECKING:
    from evm.precompiles.contract import Precompile
    from evm.simulation.arguments import CallMessage
    from evm.simulation.block import CallBlock
    from evm.world import World

TRANSFER_GAS = 21_000
"""What a transfer costs at most."""
ERROR_RATIO = 0.015
"""An estimate may be too high by at most this fraction of itself."""


class NoEstimate(Exception):
    """Raised when no gas limit lets a call succeed. `str` is geth's text.

    revert: the return data if the call was reverted, otherwise None.
    """

    def __init__(self, text: str, revert: bytes | None = None) -> None:
        self.revert = revert
        super().__init__(text)


class GasEstimator:
    """Executes a call with different gas limits, each time on the same state."""

    def __init__(
        self,
        world: World,
        block: CallBlock,
        call: CallMessage,
        precompiles: Mapping[bytes, Precompile] | None = None,
    ) -> None:
        """Prepare an estimate.

        world: the state, overrides included. Each execution is undone.
        call: its gas is the highest limit to try, if it is at least 21,000.
        """
        self._world = world
        self._block = block
        self._call = call
        self._precompiles = precompiles
        self.gas_used = 0
        """Gas that all executions have used together."""

    def estimate(self, gas_cap: int) -> int:
        """Return the estimate. gas_cap: 0 for none.

        Raises: NoEstimate, CallRejected.
        """
        highest = self._highest(gas_cap)
        call = self._call
        if (
            not call.data
            and call.to != CREATE_ADDRESS
            and not self._world.get_code(call.to)
            and (used := self._transfer_gas()) is not None
        ):
            return used
        result = self._execute(highest)
        if result is None or (result.error or "").startswith(OUT_OF_GAS):
            raise NoEstimate(f"gas required exceeds allowance ({highest})")
        if result.error is not None:
            revert = result.return_data if result.is_reverted else None
            raise NoEstimate(result.error, revert)
        return self._search(result, highest)

    def _search(self, result: CallResult, highest: int) -> int:
        """Return the least limit, approximately, by bisection."""
        low, high = result.gas_used - 1, highest
        promising = (result.max_used_gas + self._block.fork.prices.stipend) * 64 // 63
        if promising < high:
            if self._succeeds(promising):
                high = promising
            else:
                low = promising
        while low + 1 < high and (high - low) / high >= ERROR_RATIO:
            middle = min((high + low) // 2, low * 2)
            if self._succeeds(middle):
                high = middle
            else:
                low = middle
        return high

    def _highest(self, gas_cap: int) -> int:
        """Return the highest gas limit to try, by caller, block and sender's balance.

        Raises: NoEstimate if the sender can't pay for anything.
        """
        call, block = self._call, self._block
        limit = call.gas if call.gas >= TRANSFER_GAS else block.gas_limit
        maximum = block.fork.max_transaction_gas
        if maximum is not None and block.fork.max_execution_gas is None:
            limit = min(limit, maximum)
        fee = call.max_fee_per_gas
        if fee:
            available = self._world.get_balance(call.sender)
            if call.value >= available:
                raise NoEstimate(TRANSFER_TEXT)
            available -= call.value
            if call.blob_gas and block.fork.has_blobs:
                blob_cost = call.blob_gas * (call.max_fee_per_blob_gas or 0)
                if blob_cost >= available:
                    raise NoEstimate(FUNDS_TEXT)
                available -= blob_cost
            limit = min(limit, available // fee)
        return min(limit, gas_cap) if gas_cap else limit

    def _transfer_gas(self) -> int | None:
        """Return the gas of the call if that of a transfer is enough, else None."""
        try:
            result = self._execute(TRANSFER_GAS)
        except CallRejected:
            return None  # the next execution is rejected as well, with another text
        return None if result is None or result.error is not None else result.gas_used

    def _succeeds(self, gas: int) -> bool:
        result = self._execute(gas)
        return result is not None and result.error is None

    def _execute(self, gas: int) -> CallResult | None:
        """Execute the call with a gas limit, and undo it.

        Return None if the limit is below the intrinsic gas.

        Raises: CallRejected for another reason.
        """
        world, call = self._world, self._call
        call.gas = gas
        try:
            result = execute_call(
                world,
                self._block,
                call,
                rules=LIMITED_CALL,
                precompiles=self._precompiles,
            )
        except CallRejected as error:
            if error.code == INTRINSIC_GAS:
                return None
            raise CallRejected(
                error.code, f"failed with {gas} gas: {error.text}"
            ) from error
        world.discard(0)
        self.gas_used += result.gas_used
        return result
