"""Execution of one call on a world, with or without an observer.

Source: go-ethereum v1.17.10, core/state_transition.go, internal/ethapi/api.go `applyMessage`
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evm.executor import Executed, Executor, base_fee
from evm.frame_errors import REVERTED, NonceOverflow
from evm.intrinsic import floor_gas
from evm.receipts import Log
from evm.simulation.checks import check_call
from evm.state import State
from evm.transactions import CREATE_ADDRESS, MAX_NONCE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from eth_typing import Address

    from evm.frame import Frame
    from evm.frame_errors import FrameError
    from evm.precompiles.contract import Precompile
    from evm.simulation.arguments import CallMessage
    from evm.simulation.block import CallBlock
    from evm.tracers.watching import Watcher
    from evm.world import World


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRules:
    """Differences between calls of several methods.

    checks_nonce: the nonce has to be the sender's.
    requires_fee: a call without fees has to pay the base fee, too.
    hides_base_fee: BASEFEE returns 0 in a call that pays nothing for gas.
    limits_execution_gas: gas above a transaction's limit can only be used as state gas.
    """

    checks_nonce: bool = False
    requires_fee: bool = False
    hides_base_fee: bool = True
    limits_execution_gas: bool = False


RPC_CALL = CallRules()
"""The rules of eth_call and its relatives."""
LIMITED_CALL = CallRules(limits_execution_gas=True)
"""The rules of eth_estimateGas and eth_createAccessList, which look for a transaction."""


@dataclass(slots=True, kw_only=True)
class CallResult:
    """The outcome of an executed call, successful or not."""

    return_data: bytes
    """Return data, the data of a revert, or the code of a created contract."""
    gas_used: int
    """After refunds, and at least the floor of the call's data."""
    execution_gas: int
    state_gas: int
    """See `evm.gas.GasUsed`."""
    max_used_gas: int
    """Before refunds, and at least the floor: the gas limit has to cover it."""
    error: str | None = None
    """geth's text for the failure, or None if the call has succeeded."""
    logs: list[Log] = field(default_factory=list)

    @property
    def is_reverted(self) -> bool:
        """Whether the call ended with REVERT."""
        return self.error == REVERTED


class CallExecutor(Executor):
    """Executes a call that was checked.

    The nonce of a sender that creates no contract may wrap around, and a call without
    fees pays nothing.
    """

    def __init__(self, state: State, call: CallMessage, rules: CallRules) -> None:
        super().__init__(state, call, call.gas_price)
        self._call = call
        self._rules = rules
        self.max_used_gas = 0
        """See `CallResult`."""

    def charge(self) -> None:
        """Charge the sender for the gas limit and the blobs, and use up the nonce."""
        state, world, call = self.state, self.state.world, self._call
        cost, sender = call.gas * call.gas_price, call.sender
        if call.blob_gas and state.fork.has_blobs:
            cost += call.blob_gas * state.blob_base_fee
        if cost:
            world.set_balance(sender, world.get_balance(sender) - cost)
        nonce = world.get_nonce(sender)
        if call.to == CREATE_ADDRESS:
            self.nonce = nonce  # geth derives the contract's address from this nonce
            if nonce == MAX_NONCE:
                return  # see `creation_error`
        world.set_nonce(sender, (nonce + 1) & MAX_NONCE)

    def fill_reservoir(self) -> None:
        """Keep the gas above the limit of execution gas for state gas (EIP-8037)."""
        if self._rules.limits_execution_gas:
            super().fill_reservoir()

    def creation_error(self, address: Address) -> FrameError | None:
        """Return the error of a creation that fails before its execution, or None."""
        if self.nonce == MAX_NONCE:
            return NonceOverflow()
        return super().creation_error(address)

    def reward(self, gas_used: int) -> None:
        """Pay the tip to the coinbase, nothing if the call is free."""
        call, world, coinbase = self._call, self.state.world, self.state.block.coinbase
        tip = 0
        if self._rules.requires_fee or not call.is_free:
            # With an overridden base fee, it may be negative; geth wraps it around.
            tip = gas_used * (call.gas_price - base_fee(self.state))
        world.set_balance(coinbase, (world.get_balance(coinbase) + tip) % 2**256)

    def settled(self, frame: Frame) -> Executed:
        """Return the gas that the sender pays for, and keep the gas before refunds."""
        used = self._call.gas - self.meter.gas_remaining - self.meter.reservoir
        self.max_used_gas = max(used, floor_gas(self._call, self.state.fork))
        return super().settled(frame)


def call_state(
    world: World,
    block: CallBlock,
    call: CallMessage,
    *,
    rules: CallRules = RPC_CALL,
    precompiles: Mapping[bytes, Precompile] | None = None,
    watcher: Watcher | None = None,
) -> State:
    """Return the state on which a call is executed.

    precompiles: contracts by address in place of the fork's.
    watcher: observes the call.
    """
    fork, new_state = block.fork, State if watcher is None else watcher.new_state
    is_free = rules.hides_base_fee and not call.gas_price
    state = new_state(world, block.context(is_free=is_free), fork)
    if fork.has_blobs:
        is_free = rules.hides_base_fee and call.max_fee_per_blob_gas == 0
        state.blob_base_fee = 0 if is_free else block.blob_base_fee or 0
    if precompiles is not None:
        state.precompiles = precompiles
    return state


def execute_call(
    world: World,
    block: CallBlock,
    call: CallMessage,
    *,
    rules: CallRules = RPC_CALL,
    precompiles: Mapping[bytes, Precompile] | None = None,
    gas_left: int | None = None,
    watcher: Watcher | None = None,
) -> CallResult:
    """Execute a call as the next transaction of a world, which has its changes then.

    precompiles: contracts by address in place of the fork's; None: the fork's.
    gas_left: gas left in the block, if that is limited.
    watcher: observes the call.

    Raises: CallRejected before the world is changed.
    """
    state = call_state(
        world, block, call, rules=rules, precompiles=precompiles, watcher=watcher
    )
    world.lock_changes()
    check_call(
        state,
        call,
        checks_nonce=rules.checks_nonce,
        requires_fee=rules.requires_fee,
        gas_left=gas_left,
        limits_execution_gas=rules.limits_execution_gas,
    )
    return run_call(state, call, rules)


def run_call(state: State, call: CallMessage, rules: CallRules) -> CallResult:
    """Execute a call that was checked. state: see `call_state`."""
    state.begin(call)
    executor = CallExecutor(state, call, rules)
    frame, gas_used, execution_gas, state_gas = executor.run()
    effects, error = frame.transaction.effects, frame.error
    return CallResult(
        return_data=frame.output,
        gas_used=gas_used,
        execution_gas=execution_gas,
        state_gas=state_gas,
        max_used_gas=executor.max_used_gas,
        error=None if error is None else str(error),
        logs=[Log(*entry) for entry in effects.logs] if effects.logs else [],
    )
