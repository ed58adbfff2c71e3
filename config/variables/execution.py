"""Traces, and calls that are executed."""

from __future__ import annotations

from config.env import Group, count, duration, size

TRACES = Group("Traces")

NODEAPI_RECORD_LIMIT_BYTES = TRACES.variable(
    "NODEAPI_RECORD_LIMIT_BYTES",
    size,
    64 * 2**20,
    "Maximum call data of one transaction that the import stores in its trace record."
    " A transaction with more call data has no traces. The default is ten times that of"
    " an ordinary transaction that uses 30 million gas.",
)

NODEAPI_TRACE_WORKERS = TRACES.variable(
    "NODEAPI_TRACE_WORKERS",
    count,
    2,
    "Processes of each worker that execute traces on demand.",
)

NODEAPI_TRACE_CONCURRENCY = TRACES.variable(
    "NODEAPI_TRACE_CONCURRENCY",
    count,
    2,
    "Traces on demand that one API key can have at a time in each worker. A trace counts"
    " until its answer has been read.",
)

NODEAPI_TRACE_TIMEOUT = TRACES.variable(
    "NODEAPI_TRACE_TIMEOUT",
    duration,
    5.0,
    "Seconds for the trace of each transaction, unless the caller passes `timeout`. The"
    " default is geth's.",
)

NODEAPI_TRACE_SECONDS = TRACES.variable(
    "NODEAPI_TRACE_SECONDS",
    duration,
    60.0,
    "Seconds for a whole trace, even if the caller passes a longer `timeout`.",
)

NODEAPI_TRACE_MEMORY_BYTES = TRACES.variable(
    "NODEAPI_TRACE_MEMORY_BYTES",
    count,
    2**30,
    "Memory of each trace process, beyond what an idle one uses.",
)

NODEAPI_TRACE_RESULT_BYTES = TRACES.variable(
    "NODEAPI_TRACE_RESULT_BYTES", count, 2**29, "Maximum size of one trace."
)

NODEAPI_TRACE_SPOOL_BYTES = TRACES.variable(
    "NODEAPI_TRACE_SPOOL_BYTES",
    count,
    2**32,
    "Disk space of each worker for traces that clients have not read yet.",
)

NODEAPI_TRACE_OWNER_BYTES = TRACES.variable(
    "NODEAPI_TRACE_OWNER_BYTES",
    count,
    None,
    "Part of `NODEAPI_TRACE_SPOOL_BYTES` that all keys of one customer can use together."
    " With a single customer, set it to the same value.",
    "a quarter of `NODEAPI_TRACE_SPOOL_BYTES`",
)

CALLS = Group("Executed calls")

NODEAPI_CALL_GAS = CALLS.variable(
    "NODEAPI_CALL_GAS",
    size,
    50_000_000,
    "Maximum gas of one call. A higher gas limit of the caller is reduced to it. The"
    " default is geth's. 0: no limit.",
)

NODEAPI_CALL_TIMEOUT = CALLS.variable(
    "NODEAPI_CALL_TIMEOUT",
    duration,
    5.0,
    "Seconds for the execution of one call. The default is geth's.",
)

NODEAPI_CALL_CONCURRENCY = CALLS.variable(
    "NODEAPI_CALL_CONCURRENCY",
    count,
    256,
    "Maximum number of calls of one API key that are queued or executed, in each worker."
    " Customers take turns.",
)
