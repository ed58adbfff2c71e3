"""4byteTracer: number of calls by function selector and size of arguments.

Source: go-ethereum, eth/tracers/native/4byte.go
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from evm.tracers.frames import CREATIONS, CallFrame

SELECTOR_BYTES = 4


def four_byte_json(top: CallFrame, precompiles: Collection[bytes]) -> str:
    """Return the tracer's result as JSON.

    precompiles: addresses of the fork's precompiled contracts.
    """
    counts: Counter[str] = Counter()
    waiting = [top]
    while waiting:
        frame = waiting.pop()
        waiting += frame.calls
        if frame.type == "SELFDESTRUCT" or frame.type in CREATIONS:
            continue
        data = frame.input
        if len(data) >= SELECTOR_BYTES and frame.to not in precompiles:
            size = len(data) - SELECTOR_BYTES
            counts[f"0x{data[:SELECTOR_BYTES].hex()}-{size}"] += 1
    members = [f'"{name}":{count}' for name, count in sorted(counts.items())]
    return f"{{{','.join(members)}}}"
