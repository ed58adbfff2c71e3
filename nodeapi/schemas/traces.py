"""Options and results of `debug_` traces."""

from __future__ import annotations

from nodeapi.schemas.building import array_of, component, object_with
from nodeapi.schemas.calls import BLOCK_OVERRIDES, FORK, STATE_OVERRIDES
from nodeapi.schemas.values import BOOLEAN, HASH32, INTEGER, QUANTITY, STRING, UNSIGNED

TRACE_OPTIONS = component(
    "TraceOptions",
    object_with(
        {
            "tracer": STRING,
            "tracerConfig": {},
            "timeout": {"type": "string", "pattern": r"^[-+]?([0-9.]+[a-zµμ]+)+$|^0$"},
            "enableMemory": BOOLEAN,
            "disableStack": BOOLEAN,
            "disableStorage": BOOLEAN,
            "enableReturnData": BOOLEAN,
            "limit": INTEGER,
            "fromTx": {"oneOf": [QUANTITY, UNSIGNED]},
            "toTx": {"oneOf": [QUANTITY, UNSIGNED]},
        },
        optional="tracer tracerConfig timeout enableMemory disableStack disableStorage "
        "enableReturnData limit fromTx toTx",
    ),
)

TRANSACTION_TRACE_OPTIONS = component(
    "TransactionTraceOptions",
    {"allOf": [TRACE_OPTIONS, object_with({"fork": FORK}, optional="fork")]},
)

TRACER_RESULT = component("Trace", {"description": "The result of the tracer."})

BLOCK_TRACES = array_of(
    object_with(
        {"txHash": HASH32, "result": TRACER_RESULT, "error": STRING}, "result error"
    )
)

CALL_TRACE_OPTIONS = component(
    "CallTraceOptions",
    {
        "allOf": [
            TRANSACTION_TRACE_OPTIONS,
            object_with(
                {
                    "stateOverrides": STATE_OVERRIDES,
                    "blockOverrides": BLOCK_OVERRIDES,
                    "txIndex": QUANTITY,
                },
                optional="stateOverrides blockOverrides txIndex",
            ),
        ]
    },
)
