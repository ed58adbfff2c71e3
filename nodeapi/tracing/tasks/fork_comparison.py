"""The task that executes a transaction or a call by the rules of two forks."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import orjson

from evm.chain_config import InvalidChainConfig
from evm.hexadecimal import to_hex
from evm.simulation.arguments import InvalidCall
from evm.simulation.call import execute_call
from evm.simulation.comparison import (
    Difference,
    Execution,
    first_difference,
    observed,
)
from evm.simulation.overrides import InvalidOverride
from evm.simulation.transactions import execute_under
from evm.tracers.frames import CREATIONS
from nodeapi.arguments.calls import decode_call
from nodeapi.tracing.context import SERVER_ERROR, TaskFailed, TaskResult
from nodeapi.tracing.tasks.call_traces import before
from nodeapi.tracing.tasks.calls import message_of, prepare

if TYPE_CHECKING:
    from evm.receipts import Log
    from evm.rules.fork import Fork
    from evm.simulation.arguments import CallMessage
    from evm.simulation.call import CallResult
    from evm.tracers.frames import CallFrame
    from evm.tracers.watching import Watcher
    from nodeapi.tracing.context import Task, TaskContext
    from nodeapi.tracing.tasks.calls import Setting

_REFUSALS = (InvalidCall, InvalidChainConfig, InvalidOverride)


def compare_forks(context: TaskContext, arguments: dict[str, Any]) -> TaskResult:
    """Return the outcomes under two forks, and the first frame that differs.

    arguments: `forks`, two names, of which None is the block's own fork. For a
        transaction `index`, its place in the job's block; for a call those of
        `nodeapi.tracing.tasks.calls.call`.

    Raises: TaskFailed.
    """
    compare = _calls if "call" in arguments else _transaction
    try:
        executions = compare(context, arguments)
    except _REFUSALS as error:
        raise TaskFailed(SERVER_ERROR, str(error)) from error
    results = [each.result for each in executions]
    gas_used = sum(each.gas_used for each in results if each is not None)
    return TaskResult(orjson.dumps(_document(executions)), gas_used)


def _transaction(context: TaskContext, arguments: dict[str, Any]) -> list[Execution]:
    """Execute a transaction twice on the state before it."""
    index, executions = arguments["index"], []
    replay = before(context, context.state, index)
    transaction = replay.origin.block.transactions[index]
    for name in arguments["forks"]:
        fork = _fork(context, name, replay.origin.fork)
        block = replay.origin.call_block(fork)
        execute = partial(execute_under, replay.world, block, transaction)
        executions.append(observed(fork.name, execute))
        replay.world.discard(0)
    return executions


def _calls(context: TaskContext, arguments: dict[str, Any]) -> list[Execution]:
    """Execute a call twice after the job's block, overrides included."""
    asked, executions = decode_call(arguments["call"]), []
    overrides = arguments.get("block") or {}
    for name in arguments["forks"]:
        changed = overrides if name is None else {**overrides, "Fork": name}
        setting = prepare(context, {**arguments, "block": changed or None})
        message = message_of(setting, asked, arguments)
        execute = partial(_execute, setting, message)
        executions.append(observed(setting.block.fork.name, execute))
    return executions


def _execute(setting: Setting, message: CallMessage, watcher: Watcher) -> CallResult:
    world, block, precompiles = setting.world, setting.block, setting.precompiles
    return execute_call(world, block, message, precompiles=precompiles, watcher=watcher)


def _fork(context: TaskContext, name: str | None, own: Fork) -> Fork:
    return own if name is None else context.config.named_fork(name)


# The result


def _document(executions: list[Execution]) -> dict[str, Any]:
    left, right = executions
    difference = None
    if left.top is not None and right.top is not None:
        difference = first_difference(left.top, right.top)
    return {
        "forkA": _outcome(left),
        "forkB": _outcome(right),
        "firstDifference": None if difference is None else _difference(difference),
    }


def _outcome(execution: Execution) -> dict[str, Any]:
    result = execution.result
    if result is None:
        text = execution.rejection
        return {"fork": execution.fork, "status": None, "error": text, "logs": []}
    found = {
        "fork": execution.fork,
        "status": "0x1" if result.error is None else "0x0",
        "gasUsed": hex(result.gas_used),
        "executionGas": hex(result.execution_gas),
        "stateGas": hex(result.state_gas),
        "output": to_hex(result.return_data),
        "logs": [_log(log) for log in result.logs],
    }
    if result.error is not None:
        found["error"] = result.error
    return found


def _log(log: Log) -> dict[str, Any]:
    return {
        "address": to_hex(log.address),
        "topics": [to_hex(topic) for topic in log.topics],
        "data": to_hex(log.data),
    }


def _difference(difference: Difference) -> dict[str, Any]:
    left, right = difference.frames
    return {
        "path": list(difference.path),
        "differs": list(difference.members),
        "frameA": _frame(left),
        "frameB": _frame(right),
    }


def _frame(frame: CallFrame) -> dict[str, Any]:
    """Return a frame as callTracer does, but with the number of its calls."""
    found: dict[str, Any] = {
        "type": frame.type,
        "from": to_hex(frame.sender),
        "gas": hex(frame.gas),
        "gasUsed": hex(frame.gas_used),
        "input": to_hex(frame.input),
        "output": to_hex(frame.output),
        "calls": len(frame.calls),
    }
    if frame.to is not None and not (frame.type in CREATIONS and frame.error):
        found["to"] = to_hex(frame.to)
    if frame.value is not None:
        found["value"] = hex(frame.value)
    if frame.error is not None:
        found["error"] = frame.error
    return found


TASKS: dict[str, Task] = {"compareForks": compare_forks}
