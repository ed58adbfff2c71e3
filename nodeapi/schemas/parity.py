"""Traces in Parity's format, which the `trace_` methods return, and their arguments."""

from __future__ import annotations

from jsonrpc.params import Schema
from nodeapi.schemas.building import array_of, component, object_with, or_null
from nodeapi.schemas.calls import CALL
from nodeapi.schemas.values import ADDRESS, DATA, HASH32, NUMBER, STRING, UNSIGNED

_FLAT_TRACE = component(
    "FlatTrace",
    object_with(
        {
            "action": {"type": "object"},
            "blockHash": HASH32,
            "blockNumber": UNSIGNED,
            "error": STRING,
            "result": or_null({"type": "object"}),
            "subtraces": UNSIGNED,
            "traceAddress": array_of(UNSIGNED),
            "transactionHash": or_null(HASH32),
            "transactionPosition": or_null(UNSIGNED),
            "type": {"type": "string", "enum": ["call", "create", "suicide", "reward"]},
        },
        optional="error result",
    ),
)

FLAT_TRACES = array_of(_FLAT_TRACE)
FLAT_TRACES_OR_NULL = or_null(FLAT_TRACES)
FLAT_TRACE_OR_NULL = or_null(_FLAT_TRACE)

TRACE_TYPES: Schema = array_of(
    {"type": "string", "enum": ["trace", "vmTrace", "stateDiff"]}
)

CALLS_WITH_TYPES: Schema = array_of(
    {"type": "array", "prefixItems": [CALL, TRACE_TYPES], "minItems": 2, "maxItems": 2}
)

_CHANGE: Schema = {"oneOf": [{"type": "string", "enum": ["="]}, {"type": "object"}]}

_STATE_DIFF = component(
    "StateDiff",
    {
        "type": "object",
        "additionalProperties": object_with(
            {
                "balance": _CHANGE,
                "code": _CHANGE,
                "nonce": _CHANGE,
                "storage": {"type": "object", "additionalProperties": _CHANGE},
            }
        ),
    },
)

_VM_TRACE = component(
    "VmTrace",
    object_with(
        {
            "code": DATA,
            "ops": array_of(
                object_with(
                    {
                        "pc": UNSIGNED,
                        "cost": UNSIGNED,
                        "ex": or_null({"type": "object"}),
                        "sub": or_null({"$ref": "#/components/schemas/VmTrace"}),
                    }
                )
            ),
        }
    ),
)

_PARITY_TRACE = component(
    "ParityTrace",
    object_with(
        {
            "action": {"type": "object"},
            "error": STRING,
            "result": {"type": "object"},
            "subtraces": UNSIGNED,
            "traceAddress": array_of(UNSIGNED),
            "type": {"type": "string", "enum": ["call", "create", "suicide"]},
        },
        optional="error result",
    ),
)

PARITY_RESULT = component(
    "ParityResult",
    object_with(
        {
            "output": DATA,
            "stateDiff": or_null(_STATE_DIFF),
            "trace": array_of(_PARITY_TRACE),
            "transactionHash": HASH32,
            "vmTrace": or_null(_VM_TRACE),
        },
        optional="transactionHash",
    ),
)

PARITY_RESULT_OR_NULL = or_null(PARITY_RESULT)
PARITY_RESULTS = array_of(PARITY_RESULT)
PARITY_RESULTS_OR_NULL = or_null(PARITY_RESULTS)

TRACE_FILTER = component(
    "TraceFilter",
    object_with(
        {
            "fromBlock": NUMBER,
            "toBlock": NUMBER,
            "fromAddress": array_of(ADDRESS),
            "toAddress": array_of(ADDRESS),
            "mode": {"type": "string", "enum": ["union", "intersection"]},
            "after": NUMBER,
            "count": NUMBER,
        },
        optional="fromBlock toBlock fromAddress toAddress mode after count",
    ),
)
"""The filter of trace_filter. Numbers may be JSON numbers or digits in a string."""
