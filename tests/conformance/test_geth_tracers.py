"""go-ethereum's tracer tests: `pytest tests/conformance --geth-tracers DIR`.

DIR holds a folder for each tracer. Each case is executed as the service executes a
block, recorded, and answered from the record; for the `…_legacy` folders our JavaScript
tracers of these names run over it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
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
)
from evm.tracers.flat_call import FlatCallConfig
from evm.tracers.javascript import BUNDLED_TRACERS
from evm.tracers.prestate import PrestateConfig
from evm.tracers.record import fill_calls, fill_codes, unpack
from tests.support.geth_tracers import Case, read_case, record
from tests.support.programs import run_program

Config = dict[str, Any]

UNKNOWN_IN_CASES: dict[str, None] = dict.fromkeys(
    ("blockHash", "blockNumber", "transactionHash", "transactionPosition")
)
"""Members of flatCallTracer's result about the position, which a case does not have."""


def call_tracer(config: Config) -> Derivation:
    return call_derivation(
        CallConfig(
            only_top_call=config.get("onlyTopCall", False),
            with_log=config.get("withLog", False),
        )
    )


def flat_call_tracer(config: Config) -> Derivation:
    return flat_call_derivation(
        FlatCallConfig(
            convert_parity_errors=config.get("convertParityErrors", False),
            include_precompiles=config.get("includePrecompiles", False),
        )
    )


def prestate_tracer(config: Config) -> Derivation:
    return prestate_derivation(
        PrestateConfig(
            diff_mode=config.get("diffMode", False),
            disable_code=config.get("disableCode", False),
            disable_storage=config.get("disableStorage", False),
            include_empty=config.get("includeEmpty", False),
        )
    )


def mux_tracer(config: Config) -> Derivation:
    return mux_derivation(
        tuple((name, NATIVE[name](inner or {})) for name, inner in config.items())
    )


NATIVE: dict[str, Callable[[Config], Derivation]] = {
    "callTracer": call_tracer,
    "flatCallTracer": flat_call_tracer,
    "prestateTracer": prestate_tracer,
    "4byteTracer": lambda config: FOUR_BYTE_DERIVATION,
    "noopTracer": lambda config: NOOP_DERIVATION,
    "muxTracer": mux_tracer,
}

FOLDERS = {
    "call_tracer_legacy": "callTracerLegacy",
    "prestate_tracer_legacy": "prestateTracerLegacy",
    "call_tracer_flat": "flatCallTracer",
    "flat_call_tracer": "flatCallTracer",
    "call_tracer": "callTracer",
    "prestate_tracer": "prestateTracer",
    "4byte_tracer": "4byteTracer",
    "four_byte_tracer": "4byteTracer",
    "noop_tracer": "noopTracer",
    "mux_tracer": "muxTracer",
}
"""Prefix of a folder's name → tracer. The longest matching prefix counts."""


def tracer_of(folder: str) -> str:
    found = [name for name in FOLDERS if folder.startswith(name)]
    assert found, f"the folder {folder} names no tracer"
    return FOLDERS[max(found, key=len)]


def answer(case: Case, tracer: str) -> Any:
    """Return the service's result for a case, from a program or from its trace record."""
    if tracer in BUNDLED_TRACERS:
        return run_program(case, tracer)
    recorded, codes = record(case)
    made = NATIVE[tracer](dict(case.tracer_config)).derive(recorded, codes)
    if not case.tracer_config and tracer in ("callTracer", "prestateTracer"):
        # Results with default options are stored.
        if tracer == "callTracer":
            stored, size = (
                fill_calls(recorded.calls, recorded.document),
                recorded.calls_size,
            )
        else:
            stored, size = (
                fill_codes(unpack(recorded.prestate), codes),
                recorded.prestate_size,
            )
        assert stored == made
        assert len(stored) == size
    return json.loads(made)


def comparable(tracer: str, result: Any) -> Any:
    """Return a result as geth's own test sees it: decoded into Go's structs.

    There an absent member is its type's zero value; some recorded results have such
    members, some have not.
    """
    if tracer == "flatCallTracer":
        return [
            {key: without_zeros(value) for key, value in entry.items()}
            for entry in (
                {"error": None, "result": None} | e | UNKNOWN_IN_CASES for e in result
            )
        ]
    if tracer == "callTracer":
        with_numbered_logs(result)
    if tracer == "callTracerLegacy":
        with_decoded_members(result)
    return result


def without_zeros(value: Any) -> Any:
    """Return an action or a result without the members that are zero."""
    if not isinstance(value, dict):
        return value
    kept = {k: v for k, v in value.items() if v and v.strip("0x") != ""}
    return kept or None


def with_decoded_members(frame: Any) -> None:
    """Make addresses lower-case, an absent input empty, and an empty output absent."""
    frame.setdefault("input", "0x")
    for key in frame.keys() & {"from", "to"}:
        frame[key] = frame[key].lower()
    if frame.get("output") == "0x":
        del frame["output"]
    for call in frame.get("calls", ()):
        with_decoded_members(call)


def with_numbered_logs(frame: Any) -> None:
    for log in frame.get("logs", ()):
        log.setdefault("index", "0x0")
        log.setdefault("position", "0x0")
    for call in frame.get("calls", ()):
        with_numbered_logs(call)


def test_the_answer_is_geths(tracer_case: Path) -> None:
    case, tracer = read_case(tracer_case), tracer_of(tracer_case.parent.name)
    expected = comparable(tracer, case.result)
    assert comparable(tracer, answer(case, tracer)) == expected
