"""Execution of methods' tasks in worker processes, with a cache and prices.

The outcome of a task at a block never changes. It is cached by the block's hash and the
arguments, lasting failures included, and requests for the same task share its execution.
"""

from __future__ import annotations

import struct
from collections.abc import Hashable
from dataclasses import replace
from functools import partial
from hashlib import sha256
from typing import Any

import orjson
from django.conf import settings

from evm.proved_state import UnknownValues
from jsonrpc.errors import ServiceUnavailable
from jsonrpc.later import Later
from nodeapi.errors.execution import ExecutionFailed, TaskResultTooLarge, TaskTimeout
from nodeapi.methods.context import Context
from nodeapi.proofs.unknown import UnknownInCall, UnknownPast
from nodeapi.results.answers import Answer
from nodeapi.store import TaskName
from nodeapi.tracing import wire
from nodeapi.tracing.answers import TaskAnswer
from nodeapi.tracing.jobs import TaskJob

GAS_PER_CREDIT = 500_000
"""Gas for which one credit is charged. The first amount is part of a method's price."""

GAS_OF_TIMEOUT = 50_000_000
"""Gas for which an execution that took too long is charged where calls have no gas limit.
With a limit, it is charged for that."""

_CHEAP, _CHARGED, _FAILED = range(3)
"""First byte of a cached outcome: a result whose gas costs nothing more; a result, or an
error object's code, message and data, behind the gas used."""
_GAS = struct.Struct(">BQ")

_NEED_ROWS = {
    "proof": 0,
    "modified_accounts": 0,
    "witness": 1,
    "storage_range": 1,
    "intermediate_roots": 1,
}
"""Tasks that need rows or trie nodes, so that values with proofs are not sufficient. 0: those
of the block's state, 1: those of the state before."""

_EXECUTING_BLOCKS = frozenset({"block_access_list", "traceStored"})
"""Tasks that execute their block on the state before it. So do those with an `index`."""

_KEPT_BYTES = 2**18
"""Maximum size of a cached result."""


def credits_for_gas(gas_used: int) -> int:
    """Return the credits for executed gas, beyond the price of the method."""
    return max(0, -(-gas_used // GAS_PER_CREDIT) - 1)


def run_task(
    context: Context,
    task: str,
    block_hash: bytes,
    arguments: Any,
    digest: bytes | None = None,
    *,
    is_cached: bool = True,
    timeout: float | None = None,
) -> Later[Answer]:
    """Return the result of a task, a stream if it is long.

    task: a name in `nodeapi.tracing.tasks.TASKS`.
    block_hash: the block after which it reads the state; b"" if it reads none.
    arguments: see `TaskJob`.
    digest: `digest_of(arguments)`, if the caller has it.
    is_cached: whether the outcome depends on block and arguments only, and is kept.
    timeout: seconds of execution; by default the setting for calls.

    Fails with an RpcError, see `nodeapi.errors.execution`; with HistoryPruned if the state
    can't be known, and with UnknownValues if a part of it is unknown.
    """
    since = _NEED_ROWS.get(task)
    if since is None or context.network.checkpoint_number is None:
        return _run(context, task, block_hash, arguments, digest, is_cached, timeout)
    known = context.store.require_state(
        context.network, block_hash, is_executed=bool(since)
    )
    return known.then(
        lambda _: _run(context, task, block_hash, arguments, digest, is_cached, timeout)
    )


def _run(
    context: Context,
    task: str,
    block_hash: bytes,
    arguments: Any,
    digest: bytes | None,
    is_cached: bool,
    timeout: float | None,
) -> Later[Answer]:
    network_id = context.network.id
    name: TaskName | None = None
    if is_cached:
        name = (task, block_hash, digest or digest_of(arguments))
        kept = context.store.task_outcome(network_id, name)
        if kept is not None:
            if kept[0] == _CHEAP:
                return Later(kept[1:])
            return _charged(context, _read(kept))
    if context.tracing is None:
        return Later.failed(ServiceUnavailable())
    job = TaskJob(
        network_id=network_id,
        task=task,
        block_hash=block_hash,
        arguments=arguments,
        timeout=settings.NODEAPI_CALL_TIMEOUT if timeout is None else timeout,
    )
    if context.past is not None:
        states = context.past.get(_identity(job))
        if states is not None:
            job = replace(job, past=wire.past_to_json(states))
    answer = context.tracing.run(
        job,
        context.executor,
        owner=context.customer,
        request=context.turn if timeout is not None else None,
        spent=context.charge_time,
    )
    if context.network.checkpoint_number is not None:
        answer = answer.handle(partial(_naming_job, job))
    return answer.handle(partial(_keep, context, name))


def _naming_job(job: TaskJob, answer: Later[TaskAnswer]) -> Later[TaskAnswer]:
    """Add the call, and for a past state the job, to the error for unknown values."""
    error = answer.error
    if not isinstance(error, UnknownValues):
        return answer
    call = None
    if "call" in job.arguments:
        overrides = job.arguments.get("state")
        if overrides is not None:
            overrides = orjson.loads(orjson.dumps(overrides))  # perhaps a fragment
        asked = job.arguments["call"]
        call = UnknownInCall(error.keys, asked, job.block_hash, overrides)
    if not isinstance(error, UnknownPast):
        return Later.failed(call or error)
    is_executed = job.task in _EXECUTING_BLOCKS or "index" in job.arguments
    return Later.failed(
        UnknownPast(
            error.keys,
            error.block_hash,
            job=_identity(job),
            call=call,
            executed=job.block_hash if is_executed else None,
        )
    )


def _identity(job: TaskJob) -> Hashable:
    """Return what all attempts of a job have in common."""
    return job.task, job.block_hash, digest_of(job.arguments)


def digest_of(arguments: Any) -> bytes:
    """Return 32 bytes that differ for different arguments."""
    return sha256(orjson.dumps(arguments, option=orjson.OPT_SORT_KEYS)).digest()


def _keep(
    context: Context, name: TaskName | None, answer: Later[TaskAnswer]
) -> Later[Answer]:
    """Cache the outcome of a task, and charge for its gas."""
    if name is not None:
        outcome = _written(answer)
        if outcome is not None:
            context.store.keep_task_outcome(context.network.id, name, outcome)
    return _charged(context, answer)


def _charged(context: Context, answer: Later[TaskAnswer]) -> Later[Answer]:
    """Return the result of a task, and charge for its gas."""
    error = answer.error
    if error is None:
        found = answer.result()
        gas_used = found.gas_used
    else:
        gas_used = 0
        if isinstance(error, ExecutionFailed | TaskResultTooLarge):
            gas_used = error.gas_used
        elif isinstance(error, TaskTimeout):
            gas_used = settings.NODEAPI_CALL_GAS or GAS_OF_TIMEOUT
    if gas_used > GAS_PER_CREDIT:
        context.charge_more(credits_for_gas(gas_used))
    if error is not None:
        return Later.failed(error)
    return Later(found.result)


def _written(answer: Later[TaskAnswer]) -> bytes | None:
    """Return an outcome as it is cached; None for one that is not cached."""
    error = answer.error
    if isinstance(error, ExecutionFailed) and error.is_lasting:
        rest = orjson.dumps([error.code, error.message, error.data])
        return _GAS.pack(_FAILED, error.gas_used) + rest
    if error is not None:
        return None
    found = answer.result()
    result = found.result
    if not isinstance(result, bytes) or len(result) > _KEPT_BYTES:
        return None
    if not credits_for_gas(found.gas_used):
        return bytes((_CHEAP,)) + result
    return _GAS.pack(_CHARGED, found.gas_used) + result


def _read(outcome: bytes) -> Later[TaskAnswer]:
    """Return a cached outcome that is not cheap."""
    kind, gas_used = _GAS.unpack_from(outcome)
    rest = outcome[_GAS.size :]
    if kind == _FAILED:
        code, message, data = orjson.loads(rest)
        return Later.failed(ExecutionFailed(code, message, data, gas_used))
    return Later(TaskAnswer(rest, gas_used))
