"""What a caller may say about a trace: the second argument of the `debug_trace…` methods.

Source: go-ethereum eth/tracers/api.go, TraceConfig, and native/*.go
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import orjson

from jsonrpc.errors import RpcError
from jsonrpc.text import kind
from nodeapi.encoding import MAX_INDEX, index
from nodeapi.methods import go_json
from nodeapi.methods.go_json import Field
from nodeapi.tracers.native import (
    CALL,
    FLAT_CALL,
    FOUR_BYTE,
    MUX,
    NOOP,
    PRESTATE,
    NativeTracer,
)
from nodeapi.tracers.struct_log import StructLogOptions
from nodeapi.tracing.jobs import JavaScriptProgram

STRUCT_LOG, JAVASCRIPT = "structLog", "javascript"
"""What networks offer and keys are granted beside the native tracers."""


class BadTracerConfig(RpcError):
    """Raised when a tracer does not take its `tracerConfig`, or a time-out is none."""


@dataclass(frozen=True, slots=True)
class TraceOptions:
    """A tracer, and how much of a block it is for.

    timeout: seconds for each transaction, None for as many as is usual.
    first, last: a slice of the block's transactions, both included.
    names: every tracer that is used, as networks offer and keys are granted them.
    """

    tracer: NativeTracer | StructLogOptions | JavaScriptProgram
    timeout: float | None = None
    first: int = 0
    last: int = MAX_INDEX
    names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", _names(self.tracer))


def _names(
    tracer: NativeTracer | StructLogOptions | JavaScriptProgram,
) -> tuple[str, ...]:
    if isinstance(tracer, NativeTracer):
        return (tracer.name, *(inner.name for inner in tracer.inner))
    return (JAVASCRIPT if isinstance(tracer, JavaScriptProgram) else STRUCT_LOG,)


DEFAULT = TraceOptions(StructLogOptions())

_known: dict[bytes, TraceOptions] = {}
"""Options by their JSON. Callers ask for the same again and again, and decoding takes
longer than the rest of an answer that is cached."""
_KNOWN_COUNT, _KNOWN_BYTES = 1024, 256

_OPTIONS = {
    "tracer": Field("TraceConfig.Tracer", "string"),
    "tracerConfig": Field("TraceConfig.TracerConfig"),
    "timeout": Field("TraceConfig.Timeout", "string"),
    "enableMemory": Field("TraceConfig.Config.EnableMemory", "bool"),
    "disableStack": Field("TraceConfig.Config.DisableStack", "bool"),
    "disableStorage": Field("TraceConfig.Config.DisableStorage", "bool"),
    "enableReturnData": Field("TraceConfig.Config.EnableReturnData", "bool"),
    "limit": Field("TraceConfig.Config.Limit", "int"),
    "fromTx": Field("TraceConfig.FromTx"),
    "toTx": Field("TraceConfig.ToTx"),
}
"""`fromTx` and `toTx` are this service's own."""

_FLAGS = {
    CALL: ("callTracerConfig", ["onlyTopCall", "withLog"]),
    FLAT_CALL: (
        "flatCallTracerConfig",
        ["convertParityErrors", "includePrecompiles"],
    ),
    PRESTATE: (
        "prestateTracerConfig",
        ["diffMode", "disableCode", "disableStorage", "includeEmpty"],
    ),
    FOUR_BYTE: ("", []),
    NOOP: ("", []),
}
"""Tracers by name: Go's type of their options, which are all flags, and the options.

Where there is no type geth does not look at the options.
"""


def trace_options(value: Any) -> TraceOptions:
    """Return the options that an object, or null, stands for.

    Raises: ValueError; BadTracerConfig, which geth finds later and tells otherwise.
    """
    text = _json(value)
    found = _known.get(text)
    if found is None:
        found = _decode(value)
        if len(text) <= _KNOWN_BYTES:
            if len(_known) == _KNOWN_COUNT:
                _known.clear()
            _known[text] = found
    return found


def _decode(value: Any) -> TraceOptions:
    given = go_json.struct(value, "tracers.TraceConfig", _OPTIONS)
    if not given:
        return DEFAULT
    first = _position(given, "fromTx", 0)
    last = _position(given, "toTx", MAX_INDEX)
    if first > last:
        raise ValueError(f"fromTx {first} is greater than toTx {last}")
    struct_log = _struct_log(given)
    try:
        timeout = go_json.duration(given["timeout"]) if "timeout" in given else None
        if "tracer" not in given:
            return TraceOptions(struct_log, timeout, first, last)
        tracer = _tracer(given["tracer"], given.get("tracerConfig"))
    except ValueError as error:
        raise BadTracerConfig(str(error)) from error
    return TraceOptions(tracer, timeout, first, last)


def _position(given: dict[str, Any], name: str, default: int) -> int:
    """Return a transaction's index, given as a quantity or as a number."""
    value = given.get(name, default)
    if type(value) is not int:
        value = index(value)
    if value < 0:
        raise ValueError(f"{name} is negative")
    return min(value, MAX_INDEX)


def _struct_log(given: dict[str, Any]) -> StructLogOptions:
    limit = given.get("limit", 0)
    if limit < 0:
        raise ValueError("limit is negative")
    return StructLogOptions(
        enable_memory=given.get("enableMemory", False),
        disable_stack=given.get("disableStack", False),
        disable_storage=given.get("disableStorage", False),
        enable_return_data=given.get("enableReturnData", False),
        limit=limit,
    )


def _tracer(name: str, config: Any) -> NativeTracer | JavaScriptProgram:
    """Return what a name, or a program, and its options stand for.

    Raises: ValueError.
    """
    if name == MUX:
        return _mux(config)
    native = _native(name, config)
    if native is not None:
        return native
    source = _well_formed(name)
    return JavaScriptProgram(source, _json({} if config is None else config).decode())


def _native(name: str, config: Any) -> NativeTracer | None:
    """Return a tracer that looks at a single thing, None for another name."""
    if name not in _FLAGS:
        return None
    struct, flags = _FLAGS[name]
    if not struct:
        return NativeTracer(name)
    fields = {flag: Field(f"{struct}.{flag}", "bool") for flag in flags}
    given = go_json.struct(config, f"native.{struct}", fields)
    on = frozenset(flag for flag, value in given.items() if value)
    if on >= {"diffMode", "includeEmpty"}:
        raise ValueError("cannot use diffMode with includeEmpty")
    return NativeTracer(name, on)


def _mux(config: Any) -> NativeTracer:
    """Return several tracers in one; config: the options of each by its name."""
    if config is None:
        raise ValueError("unexpected end of JSON input")
    if type(config) is not dict:
        go_type = "map[string]json.RawMessage"
        raise ValueError(go_json.mismatch(kind(config), go_type))
    inner = []
    for name in sorted(config):
        tracer = _native(name, config[name])
        if tracer is None:
            raise ValueError(f"{MUX} takes native tracers, and {name[:64]!r} is none")
        inner.append(tracer)
    return NativeTracer(MUX, inner=tuple(inner))


def _json(value: Any) -> bytes:
    """Return a decoded value as JSON again. Raises: ValueError."""
    try:
        return orjson.dumps(value, default=lambda number: orjson.Fragment(number.text))
    except TypeError:  # lone surrogates, which can only be sent escaped, or depth
        pass
    try:
        return json.dumps(value, default=lambda number: float(number.text)).encode()
    except RecursionError:
        raise ValueError("the options are nested too deeply") from None


def _well_formed(text: str) -> str:
    """Return a text with what is no character replaced, as Go's decoder does."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
