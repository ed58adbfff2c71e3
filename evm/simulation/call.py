"""Execution of one call on a world, with or without an observer.

Source: go-ethereum v1.17.2, core/state_transition.go, internal/ethapi/api.go `applyMessage`
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from eth.exceptions import Revert, VMError

from evm.executor import MAX_NONCE, TransactionExecutor
from evm.frame_errors import NonceOverflow
from evm.intrinsic import floor_gas
from evm.receipts import Log
from evm.simulation.checks import check_call
from evm.tracers.frames import REVERTED
from evm.tracers.watching import WatchedExecutor, Watcher
from evm.transactions import CREATE_ADDRESS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evm.precompiles.contract import Precompile
    from evm.simulation.arguments import CallMessage
    from evm.simulation.block import CallBlock
    from evm.world import World

FAILED = "execution failed"
"""Error of a failed call for which the caller does not request geth's text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRules:
    """Differences between calls of several methods.

    checks_nonce: the nonce has to be the sender's.
    requires_fee: a call without fees has to pay the base fee, too.
    hides_base_fee: BASEFEE returns 0 in a call that pays nothing for gas.
    """

    checks_nonce: bool = False
    requires_fee: bool = False
    hides_base_fee: bool = True


RPC_CALL = CallRules()
"""The rules of eth_call and its relatives."""


@dataclass(slots=True, kw_only=True)
class CallResult:
    """The outcome of an executed call, successful or not."""

    return_data: bytes
    """Return data, the data of a revert, or the code of a created contract."""
    gas_used: int
    """After refunds, and at least the floor of the call's data."""
    max_used_gas: int
    """Before refunds, and at least the floor: the gas limit has to cover it."""
    error: str | None = None
    """geth's text for the failure, or None if the call has succeeded."""
    logs: list[Log] = field(default_factory=list)

    @property
    def is_reverted(self) -> bool:
        """Whether the call ended with REVERT."""
        return self.error == REVERTED


class _CallExecutor:
    """Mixin before a transaction executor, for calls that were checked already.

    The nonce of a sender that creates no contract may wrap around, and a call without
    fees pays nothing.
    """

    vm_state: Any
    rules: CallRules
    max_used_gas = 0

    def validate_transaction(self, call: Any) -> None:
        """Do nothing: `check_call` has checked the call."""

    def gas_price(self, call: Any) -> int:
        """Return the wei per gas that the sender pays."""
        price: int = call.gas_price
        return price

    def charge(self, call: Any) -> None:
        """Charge the sender for the gas limit and the blobs, and use up the nonce."""
        state, sender = self.vm_state, call.sender
        cost = call.gas * call.gas_price
        if call.blob_gas and state.fork.has_blobs:
            cost += call.blob_gas * state.blob_base_fee
        if cost:
            state.set_balance(sender, state.get_balance(sender) - cost)
        nonce = state.get_nonce(sender)
        if call.to == CREATE_ADDRESS:
            call.nonce = nonce  # geth derives the contract's address from this nonce
            if nonce == MAX_NONCE:
                return  # see `creation_error`
        state.set_nonce(sender, (nonce + 1) & MAX_NONCE)

    def creation_error(self, message: Any, call: Any) -> VMError | None:
        """Return the error of a creation that fails before its execution, or None."""
        if call.nonce == MAX_NONCE:
            return NonceOverflow()
        error: VMError | None = super().creation_error(  # type: ignore[misc]
            message, call
        )
        return error

    def reward(self, coinbase: bytes, call: Any, gas_used: int) -> bool:
        """Pay the tip to the coinbase, unless the call is free.

        Return whether that touches the account.
        """
        if call.is_free and not self.rules.requires_fee:
            return False
        state = self.vm_state
        base_fee = self.base_fee  # type: ignore[attr-defined]  # of the executor
        # With an overridden base fee, the tip may be negative; geth wraps it around.
        balance = state.get_balance(coinbase) + gas_used * (call.gas_price - base_fee)
        state.set_balance(coinbase, balance % 2**256)
        return True

    def settled_gas(self, call: Any, computation: Any, destroyed_count: int) -> int:
        """Return the gas that the sender pays for, and keep the gas before refunds."""
        used = call.gas - computation.get_gas_remaining()
        self.max_used_gas = max(used, floor_gas(call, self.vm_state.fork))
        settled: int = super().settled_gas(  # type: ignore[misc]
            call, computation, destroyed_count
        )
        return settled


class _PlainExecutor(_CallExecutor, TransactionExecutor):
    """Executes calls."""


class _ObservedExecutor(_CallExecutor, WatchedExecutor):
    """Executes calls and reports them to the state's watcher."""


def call_state(
    world: World,
    block: CallBlock,
    call: CallMessage,
    *,
    rules: CallRules = RPC_CALL,
    precompiles: Mapping[bytes, Precompile] | None = None,
    fork: Any = None,
) -> Any:
    """Return the py-evm State on which a call is executed.

    precompiles: contracts by address in place of the fork's.
    fork: a variant of the block's fork, such as a watched one.
    """
    fork = fork or block.fork
    context = block.execution_context(
        is_free=rules.hides_base_fee and not call.gas_price
    )
    state = fork.new_state(world, context)
    if fork.has_blobs:
        is_free = rules.hides_base_fee and call.max_fee_per_blob_gas == 0
        state.blob_base_fee = 0 if is_free else block.blob_base_fee or 0
    if precompiles is not None:
        state.computation_class = state.computation_class.with_precompiles(precompiles)
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
    names_error: bool = True,
) -> CallResult:
    """Execute a call as the next transaction of a world, which has its changes then.

    precompiles: contracts by address in place of the fork's; None: the fork's.
    gas_left: gas left in the block, if that is limited.
    watcher: observes the call.
    names_error: whether the text of a failure is wanted. It costs another execution if
        there is no watcher.

    Raises: CallRejected before the world is changed.
    """
    fork = block.fork if watcher is None else watcher.watched(block.fork)
    state = call_state(
        world, block, call, rules=rules, precompiles=precompiles, fork=fork
    )
    world.lock_changes()
    check_call(
        state,
        call,
        checks_nonce=rules.checks_nonce,
        requires_fee=rules.requires_fee,
        gas_left=gas_left,
    )
    if watcher is not None:
        state.watcher = watcher
    result, error = run_call(state, call, rules)
    if error is None:
        return result
    if isinstance(error, Revert):
        result.error = REVERTED
    elif watcher is not None:
        result.error = watcher.top.error or FAILED
    elif names_error:
        world.discard(0)
        return execute_call(
            world,
            block,
            call,
            rules=rules,
            precompiles=precompiles,
            watcher=Watcher(limit_bytes=0),
        )
    else:
        result.error = FAILED
    return result


def run_call(
    state: Any, call: CallMessage, rules: CallRules
) -> tuple[CallResult, Exception | None]:
    """Execute a call that was checked. Return its result, and the error if it failed.

    The result has no error text. state: see `call_state`; it may have a watcher.
    """
    is_observed = getattr(state, "watcher", None) is not None
    executor: Any = _ObservedExecutor if is_observed else _PlainExecutor
    executing = executor(state)
    executing.rules = rules
    computation = executing(call)
    effects = computation.transaction_context.effects
    result = CallResult(
        return_data=bytes(computation.output),
        gas_used=computation.transaction_gas_used,
        max_used_gas=executing.max_used_gas,
        logs=[Log(*entry) for entry in effects.logs] if effects.logs else [],
    )
    error: Exception | None = computation._error
    return result, error
