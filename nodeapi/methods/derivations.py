"""From the options of a caller to what makes an answer of records."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from nodeapi.methods.trace_options import (
    CALL,
    FLAT_CALL,
    FOUR_BYTE,
    MUX,
    NOOP,
    PRESTATE,
    NativeTracer,
)
from nodeapi.tracers.call import CallConfig
from nodeapi.tracers.derived import (
    CallDerivation,
    Derivation,
    FlatCallDerivation,
    FourByteDerivation,
    MuxDerivation,
    NoopDerivation,
    PrestateDerivation,
)
from nodeapi.tracers.flat_call import FlatCallConfig
from nodeapi.tracers.prestate import PrestateConfig

_CAPITAL = re.compile("(?=[A-Z])")


@lru_cache(maxsize=1024)
def derivation(tracer: NativeTracer) -> Derivation:
    """Return what makes a native tracer's answers."""
    config: dict[str, Any] = {
        _CAPITAL.sub("_", flag).lower(): True for flag in tracer.flags
    }
    if tracer.name == CALL:
        return CallDerivation(CallConfig(**config))
    if tracer.name == FLAT_CALL:
        return FlatCallDerivation(FlatCallConfig(**config))
    if tracer.name == PRESTATE:
        return PrestateDerivation(PrestateConfig(**config))
    if tracer.name == FOUR_BYTE:
        return FourByteDerivation()
    if tracer.name == NOOP:
        return NoopDerivation()
    assert tracer.name == MUX
    return MuxDerivation(
        tuple((inner.name, derivation(inner)) for inner in tracer.inner)
    )
