"""The native tracers by name, with their options."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from evm.tracers.call import CallConfig
from evm.tracers.derived import (
    FOUR_BYTE_DERIVATION,
    NOOP_DERIVATION,
    Derivation,
    call_derivation,
    flat_call_derivation,
    mux_derivation,
    prestate_derivation,
    replay_derivation,
)
from evm.tracers.flat_call import FlatCallConfig
from evm.tracers.otterscan import (
    OTS_ERROR,
    OTS_OPERATIONS,
    OTS_TRACE,
)
from evm.tracers.prestate import PrestateConfig

CALL, PRESTATE, FLAT_CALL = "callTracer", "prestateTracer", "flatCallTracer"
FOUR_BYTE, NOOP, MUX = "4byteTracer", "noopTracer", "muxTracer"
PARITY_REPLAY = "parityReplay"
"""Not a tracer of geth's: Parity's result of a replayed transaction. Its flags are the
wanted members, `trace`, `stateDiff` and `transactionHash`."""
KECCAK256_PREIMAGE, ERC7562 = "keccak256PreimageTracer", "erc7562Tracer"
"""Tracers that need the execution. Results of the others are computed from records."""

OTTERSCAN: dict[str, Derivation] = {
    derived.name: derived for derived in (OTS_TRACE, OTS_OPERATIONS, OTS_ERROR)
}
"""Not tracers of geth's: results of Otterscan's methods for one transaction."""

_CAPITAL = re.compile("(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class NativeTracer:
    """A tracer whose results are computed from trace records.

    flags: the enabled options.
    inner: the tracers of a muxTracer, sorted by name.
    """

    name: str
    flags: frozenset[str] = frozenset()
    inner: tuple[NativeTracer, ...] = ()

    def as_json(self) -> dict[str, object]:
        """Return the tracer as a JSON object. Equal tracers give equal objects."""
        inner = [tracer.as_json() for tracer in self.inner]
        return {"name": self.name, "flags": sorted(self.flags), "inner": inner}

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> NativeTracer:
        """Return the tracer that a JSON object describes."""
        inner = tuple(cls.from_json(tracer) for tracer in found["inner"])
        return cls(found["name"], frozenset(found["flags"]), inner)


@lru_cache(maxsize=1024)
def derivation(tracer: NativeTracer) -> Derivation:
    """Return the object that computes a tracer's results."""
    config = {_CAPITAL.sub("_", flag).lower(): True for flag in tracer.flags}
    if tracer.name == CALL:
        return call_derivation(CallConfig(**config))
    if tracer.name == FLAT_CALL:
        return flat_call_derivation(FlatCallConfig(**config))
    if tracer.name == PRESTATE:
        return prestate_derivation(PrestateConfig(**config))
    if tracer.name == FOUR_BYTE:
        return FOUR_BYTE_DERIVATION
    if tracer.name == NOOP:
        return NOOP_DERIVATION
    if tracer.name == PARITY_REPLAY:
        return replay_derivation(**config)
    if tracer.name in OTTERSCAN:
        return OTTERSCAN[tracer.name]
    assert tracer.name == MUX
    return mux_derivation([(inner.name, derivation(inner)) for inner in tracer.inner])
