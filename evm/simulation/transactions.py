"""Execution of a block's transaction by the rules of another fork.

The transaction is executed as a call with its own fees, nonce and gas limit, so that it is
rejected with geth's texts. Its signature has been checked in its own block.

Source: go-ethereum v1.17.10, core/state_transition.go `preCheck` and `execute`
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from evm.checks import check_gas_limit, check_sender, check_type
from evm.simulation.arguments import CallArguments, CallMessage, call_message
from evm.simulation.call import CallResult, CallRules, execute_call
from evm.simulation.traced import execute_traced_call
from evm.transactions import ACCESS_LIST, CREATE_ADDRESS, Transaction

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evm.simulation.block import CallBlock
    from evm.tracers.frame_events import Events
    from evm.tracers.steps import StepTracer
    from evm.tracers.watching import Watcher
    from evm.world import World

TRANSACTION = CallRules(
    checks_nonce=True,
    requires_fee=True,
    hides_base_fee=False,
    limits_execution_gas=True,
)
"""The rules of a call that stands for a transaction."""


def transaction_arguments(transaction: Transaction) -> CallArguments:
    """Return the arguments of the call that does the same as a transaction."""
    has_one_price = transaction.type <= ACCESS_LIST
    fee, tip = transaction.max_fee_per_gas, transaction.max_priority_fee_per_gas
    return CallArguments(
        sender=transaction.sender,
        to=None if transaction.to == CREATE_ADDRESS else transaction.to,
        gas=transaction.gas,
        gas_price=fee if has_one_price else None,
        max_fee_per_gas=None if has_one_price else fee,
        max_priority_fee_per_gas=None if has_one_price else tip,
        value=transaction.value,
        nonce=transaction.nonce,
        data=transaction.data,
        access_list=transaction.access_list or None,
        max_fee_per_blob_gas=transaction.max_fee_per_blob_gas or None,
        blob_versioned_hashes=tuple(transaction.blob_versioned_hashes) or None,
        authorization_list=tuple(transaction.authorization_list) or None,
    )


def execute_under(
    world: World,
    block: CallBlock,
    transaction: Transaction,
    watcher: Watcher | None = None,
    *,
    gas: int | None = None,
) -> CallResult:
    """Execute a transaction by the rules of a block's fork, whatever its own are.

    Gas that other transactions of the block have used does not matter. The caller may
    undo all changes (`World.discard(0)`).

    block: the transaction's own, with another fork.
    watcher: observes the transaction.
    gas: a gas limit in place of the transaction's own.

    Raises: CallRejected if the fork does not allow the transaction.
    """
    call = _checked_message(world, block, transaction, gas)
    with _own_warm_accounts(world):
        return execute_call(world, block, call, rules=TRANSACTION, watcher=watcher)


def trace_under(
    world: World,
    block: CallBlock,
    transaction: Transaction,
    tracer: StepTracer,
    events: Events,
    *,
    deadline: float,
    index: int,
    block_hash: bytes,
) -> CallResult:
    """Execute a transaction as `execute_under` does, and report it to a tracer.

    events, deadline, index, block_hash: see `execute_traced_call`.

    Raises: CallRejected; TracerError.
    """
    call = _checked_message(world, block, transaction)
    with _own_warm_accounts(world):
        return execute_traced_call(
            world,
            block,
            call,
            tracer,
            deadline=deadline,
            rules=TRANSACTION,
            block_hash=block_hash,
            index=index,
            events=events,
        )


@contextmanager
def _own_warm_accounts(world: World) -> Iterator[None]:
    """Keep the precompiled contracts of the block's own fork for later transactions."""
    always_warm = world.always_warm
    try:
        yield
    finally:
        world.always_warm = always_warm


def _checked_message(
    world: World, block: CallBlock, transaction: Transaction, gas: int | None = None
) -> CallMessage:
    """Return the call that stands for a transaction, which the fork has to allow.

    gas: as of `execute_under`. Raises: CallRejected.
    """
    check_type(transaction, block.fork)
    call = call_message(
        transaction_arguments(transaction),
        chain_id=block.config.chain_id,
        base_fee=block.base_fee,
        gas_cap=0,
    )
    call.hash = transaction.hash
    if gas is not None:
        call.gas = gas
    check_gas_limit(block.fork, call)
    check_sender(world, block.fork, call)
    return call
