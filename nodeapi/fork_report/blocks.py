"""Execution of stored blocks by their own rules and by those of another fork.

It runs in worker processes, without Django.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, NamedTuple

import psycopg
from eth_typing import Hash32

from evm.chain_config import ChainConfig, InvalidChainConfig
from evm.checks import CallRejected
from evm.errors import InvalidBlock
from evm.simulation.transactions import execute_under
from evm.transactions import CREATE_ADDRESS
from nodeapi.chain.branch import StateMismatch
from nodeapi.chain.replay import NotTraceable, Origin, Replay, find_origin
from nodeapi.fork_report.survey import Change, Effect, Survey
from nodeapi.tracing.alarm import CHECK_SECONDS, Alarm
from nodeapi.tracing.context import TaskTimedOut
from nodeapi.tracing.execution import snapshot

if TYPE_CHECKING:
    from eth_typing import Address

    from evm.rules.fork import Fork
    from evm.simulation.block import CallBlock
    from evm.transactions import Transaction
    from evm.world import World

ENOUGH_GAS = 100_000_000
"""The gas limit with which a failed transaction is tried again, if the fork allows it."""
TRY_SECONDS = 10
"""Time limit of a transaction's execution by the other fork's rules."""
_TIME_IS_OVER = f"not finished after {TRY_SECONDS} s"
_SELECTOR_BYTES = 4


class SurveyFailed(Exception):
    """Raised when a block can't be executed. Its only argument is the text.

    Thus it has the same text in another process. Most other exceptions have not, because
    they are rebuilt there from `args`.
    """


def survey_blocks(
    parameters: dict[str, Any],
    network_id: int,
    genesis: dict[str, Any],
    fork: str,
    numbers: range,
) -> Survey:
    """Return the figures of canonical blocks.

    parameters: those of `psycopg.connect`. genesis: the network's genesis.json. fork: its
        name. numbers: from 1 on.

    Raises: SurveyFailed.
    """
    survey = Survey()
    try:
        config = ChainConfig.from_genesis(genesis)
        with (
            psycopg.connect(**parameters, autocommit=True) as connection,
            snapshot(connection),
            _checked_alarm() as alarm,
        ):
            for number in numbers:
                block_hash = _hash_of(connection, network_id, number)
                origin = find_origin(connection, network_id, config, block_hash)
                survey_block(survey, origin, config.named_fork(fork), alarm)
    except (
        *(InvalidChainConfig, NotTraceable, InvalidBlock, psycopg.Error),
        *(StateMismatch, LookupError, ValueError),  # rows that are missing or damaged
    ) as error:
        raise SurveyFailed(str(error)) from error
    return survey


@contextmanager
def _checked_alarm() -> Iterator[Alarm]:
    """Return an alarm which a thread checks during a `with` block."""
    alarm, ended = Alarm(TaskTimedOut), Event()

    def check() -> None:
        while not ended.wait(CHECK_SECONDS):
            alarm.check()

    thread = Thread(target=check, name="alarm")
    thread.start()
    try:
        yield alarm
    finally:
        ended.set()
        thread.join()


def _hash_of(
    connection: psycopg.Connection[Any], network_id: int, number: int
) -> Hash32:
    """Return the hash of a canonical block. Raises: LookupError."""
    row = connection.execute(
        "SELECT hash FROM nodeapi_block"
        " WHERE network_id = %b AND number = %b AND is_canonical",
        (network_id, number),
        binary=True,
    ).fetchone()
    if row is None:
        raise LookupError(f"there is no block {number}")
    return Hash32(row[0])


def survey_block(survey: Survey, origin: Origin, fork: Fork, alarm: Alarm) -> None:
    """Add the figures of a block's transactions.

    alarm: ends tries that take longer than `TRY_SECONDS`, if another thread checks it.
    """
    replay, block = Replay(origin), origin.call_block(fork)
    survey.blocks += 1
    survey.forks.add(origin.fork.name)
    for index, transaction in enumerate(origin.block.transactions):
        attempt = again = _Attempt(transaction.gas, _TIME_IS_OVER)
        try:
            with alarm.until(time.monotonic() + TRY_SECONDS):
                attempt = again = _attempt(replay.world, block, transaction)
            if attempt.error:
                again = _Attempt(ENOUGH_GAS, _TIME_IS_OVER)
                with alarm.until(time.monotonic() + TRY_SECONDS):
                    again = _attempt_with_enough_gas(replay.world, block, transaction)
        except TaskTimedOut:
            # The state may have been interrupted in the middle of a change.
            replay = Replay(origin)
            for _ in range(index):
                replay.skip()
        receipt = replay.skip()
        was_success = replay.top.error is None
        change, gas_after, error = _change(was_success, attempt, again)
        contract, selector = _function(transaction)
        survey.add(
            Effect(
                transaction.hash,
                contract,
                selector,
                change,
                receipt.gas_used,
                gas_after,
                error,
            )
        )


class _Attempt(NamedTuple):
    """An execution by the rules of the other fork."""

    gas_used: int | None
    """None if the fork does not allow the transaction."""
    error: str
    """geth's text without figures, "" for a success."""


def _attempt(
    world: World, block: CallBlock, transaction: Transaction, gas: int | None = None
) -> _Attempt:
    """Execute a transaction, and undo it. gas: as of `execute_under`."""
    try:
        result = execute_under(world, block, transaction, gas=gas)
    except CallRejected as error:
        return _Attempt(None, error.text.partition(":")[0].partition(" (")[0])
    world.discard(0)
    return _Attempt(result.gas_used, result.error or "")


def _attempt_with_enough_gas(
    world: World, block: CallBlock, transaction: Transaction
) -> _Attempt:
    """Execute a transaction with a higher gas limit, and undo it."""
    gas = min(ENOUGH_GAS, block.fork.max_transaction_gas or ENOUGH_GAS)
    sender = transaction.sender
    balance = world.get_balance(sender)
    # The sender need not have the ether for it.
    world.set_balance(sender, balance + gas * transaction.max_fee_per_gas)
    try:
        return _attempt(world, block, transaction, gas)
    finally:
        world.set_balance(sender, balance)


def _change(
    was_success: bool, attempt: _Attempt, again: _Attempt
) -> tuple[Change, int | None, str]:
    """Return the change, the gas used, and the error if a success becomes a failure.

    was_success: by the block's own rules. attempt: with the transaction's gas limit.
    again: with a higher one, if the attempt was none.
    """
    if not attempt.error:
        change = Change.NONE if was_success else Change.SUCCEEDS
        return change, attempt.gas_used, ""
    if again.gas_used is None:
        if attempt.gas_used is None:
            return Change.REFUSED, None, again.error
        again = attempt
    gas_used = again.gas_used if attempt.gas_used is None else attempt.gas_used
    if not was_success:
        return Change.NONE, gas_used, ""
    if again.error:
        return Change.FAILS, gas_used, again.error
    return Change.NEEDS_GAS, again.gas_used, attempt.error


def _function(transaction: Transaction) -> tuple[Address | None, bytes]:
    """Return the called account, None for a creation, and the selector."""
    if transaction.to == CREATE_ADDRESS:
        return None, b""
    selector = transaction.data[:_SELECTOR_BYTES]
    return transaction.to, selector if len(selector) == _SELECTOR_BYTES else b""
