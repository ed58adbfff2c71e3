"""Options of a trace: the second argument of the `debug_trace…` methods.

Source: go-ethereum eth/tracers/api.go, TraceConfig, and native/*.go
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import orjson

from evm.chain_config import fork_by_name
from evm.tracers.erc7562 import IGNORED_OPCODES
from evm.tracers.native import (
    CALL,
    ERC7562,
    FLAT_CALL,
    FOUR_BYTE,
    KECCAK256_PREIMAGE,
    MUX,
    NOOP,
    OTTERSCAN,
    PARITY_REPLAY,
    PRESTATE,
    NativeTracer,
)
from evm.tracers.struct_log import StructLogOptions
from jsonrpc.errors import RpcError
from jsonrpc.params import Param
from jsonrpc.source import Text, members
from jsonrpc.text import kind, parse_exactly
from nodeapi.encoding import MAX_INDEX, index
from nodeapi.go import decoding
from nodeapi.go.decoding import Field
from nodeapi.schemas.traces import TRACE_OPTIONS, TRANSACTION_TRACE_OPTIONS
from nodeapi.tracing.jobs import (
    Executed,
    JavaScriptProgram,
    OpcodeTracer,
    TracerGroup,
    VmTracing,
)

STRUCT_LOG, JAVASCRIPT = "structLog", "javascript"
"""Names for entitlements of tracers that have no name of their own."""

PARITY_TRACERS = {"trace": FLAT_CALL, "stateDiff": PRESTATE}
"""Members of Parity's results, and the tracers whose entitlements they need."""

T = TypeVar("T")


class BadTracerConfig(RpcError):
    """Raised when a `tracerConfig` or a `timeout` is invalid."""

    form = "the message of the tracer"
    remedy = "Correct tracerConfig or timeout as the message says."


@dataclass(frozen=True, slots=True)
class TraceOptions:
    """A tracer, and the transactions that it is for.

    timeout: seconds for each transaction, or None for the default.
    first, last: indices of the first and last transaction, both included.
    fork: the name of the fork in place of the block's own, or None.
    names: all used tracers, by their names in entitlements.
    """

    tracer: NativeTracer | Executed
    timeout: float | None = None
    first: int = 0
    last: int = MAX_INDEX
    fork: str | None = None
    names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", _names(self.tracer))


def _names(tracer: NativeTracer | Executed) -> tuple[str, ...]:
    if isinstance(tracer, VmTracing):
        return (STRUCT_LOG, *_names(tracer.replay))
    if isinstance(tracer, NativeTracer):
        if tracer.name == PARITY_REPLAY:
            members = sorted(tracer.flags & PARITY_TRACERS.keys())
            return tuple(PARITY_TRACERS[member] for member in members)
        if tracer.name in OTTERSCAN:
            return (CALL,)
        return (tracer.name, *(name for each in tracer.inner for name in _names(each)))
    if isinstance(tracer, TracerGroup):
        return (MUX, *(name for _, each in tracer.members for name in _names(each)))
    if isinstance(tracer, OpcodeTracer):
        return (tracer.name,)
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
    "fork": Field("TraceConfig.Fork", "string"),
}
"""`fromTx`, `toTx` and `fork` are this service's own."""

_CONFIG = "tracerconfig"
"""The option's name: capitals do not matter."""

_MAX_MUX_DEPTH, _MAX_MUX_PROGRAMS = 16, 16
"""Bounds of our own: each program has an engine, with memory and a limit of time."""

_ERC7562_FIELDS = {
    "stackTopItemsSize": Field("erc7562TracerConfig.stackTopItemsSize", "int"),
    "ignoredOpcodes": Field("erc7562TracerConfig.ignoredOpcodes", "[]hexutil.Uint64"),
    "withLog": Field("erc7562TracerConfig.withLog", "bool"),
}

_FLAGS = {
    CALL: ("callTracerConfig", ["onlyTopCall", "withLog"]),
    FLAT_CALL: (
        "flatCallTracerConfig",
        ["convertParityErrors", "includePrecompiles"],
    ),
    PRESTATE: (
        "PrestateTracerConfig",
        ["diffMode", "disableCode", "disableStorage", "includeEmpty"],
    ),
    FOUR_BYTE: ("", []),
    NOOP: ("", []),
}
"""Tracer → Go's type of its options, and the names of the options, which are all flags.
Without a type, geth ignores the options."""


def trace_options(value: Any, source: Text | None = None) -> TraceOptions:
    """Parse the options of a trace from an object or null.

    source: returns the object's text. A program's `setup` gets its `tracerConfig` in
        the original text. Without it, the config is encoded again.

    Raises: ValueError; BadTracerConfig, which geth reports with another error code.
    """
    options = _decoded(value, source, _options)
    if source is None or JAVASCRIPT not in options.names:
        return options
    text = source()
    return options if text is None else _with_config_of(options, text)


def _with_config_of(options: TraceOptions, text: str) -> TraceOptions:
    """Return the options with the programs' configs in their original text."""
    config = None
    for name, member in members(text):
        if name.casefold() == _CONFIG:
            config = member
    if config is None:
        return options
    return replace(options, tracer=_with_config(options.tracer, config))


def _with_config(tracer: Any, text: str) -> Any:
    """Return a tracer with the configs of programs from the text of its own."""
    if isinstance(tracer, JavaScriptProgram):
        return replace(tracer, config=text)
    if not isinstance(tracer, TracerGroup):
        return tracer
    configs = dict(members(text))
    return TracerGroup(
        tuple(
            (name, _with_config(each, configs[name])) for name, each in tracer.members
        )
    )


def trace_config(value: Any, source: Text | None = None) -> dict[str, Any]:
    """Return the known members of trace options. Their values have the right types.

    For methods of geth's that take trace options and do not use them. source: as of
    `trace_options`. Raises: ValueError with Go's error text.
    """
    return _decoded(value, source, _config)


def _decoded(value: Any, source: Text | None, decode: Callable[[Any], T]) -> T:
    """Return a decoded value. Errors show numbers as they were sent."""
    try:
        return decode(value)
    except ValueError:
        if source is None or (text := source()) is None:
            raise
        return decode(parse_exactly(text.encode()))


def _config(value: Any) -> dict[str, Any]:
    return decoding.struct(value, "tracers.TraceConfig", _OPTIONS)


def _options(value: Any) -> TraceOptions:
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
    given = _config(value)
    if not given:
        return DEFAULT
    first = _position(given, "fromTx", 0)
    last = _position(given, "toTx", MAX_INDEX)
    if first > last:
        raise ValueError(f"fromTx {first} is greater than toTx {last}")
    struct_log = _struct_log(given)
    fork = fork_by_name(given["fork"]).name if "fork" in given else None
    try:
        timeout = decoding.duration(given["timeout"]) if "timeout" in given else None
        if "tracer" not in given:
            return TraceOptions(struct_log, timeout, first, last, fork)
        tracer = _tracer(given["tracer"], _tracer_config(value))
    except ValueError as error:
        raise BadTracerConfig(str(error)) from error
    return TraceOptions(tracer, timeout, first, last, fork)


def _tracer_config(value: dict[str, Any]) -> Any:
    """Return `tracerConfig`: None for null, an empty object if it is absent."""
    found: Any = {}
    for name, member in value.items():
        if name.casefold() == _CONFIG:
            found = member
    return found


def _position(given: dict[str, Any], name: str, default: int) -> int:
    """Return a transaction's index, given as a quantity or as a number."""
    value = given.get(name, default)
    if type(value) is not int:
        value = index(value)
    if value < 0:
        raise ValueError(f"{name} is negative")
    return min(value, MAX_INDEX)


def _struct_log(given: dict[str, Any]) -> StructLogOptions:
    return StructLogOptions(
        enable_memory=given.get("enableMemory", False),
        disable_stack=given.get("disableStack", False),
        disable_storage=given.get("disableStorage", False),
        enable_return_data=given.get("enableReturnData", False),
        limit=given.get("limit", 0),
    )


def _tracer(
    name: str, config: Any, depth: int = 0
) -> NativeTracer | JavaScriptProgram | OpcodeTracer | TracerGroup:
    """Return the tracer with this name or program, and these options.

    Raises: ValueError.
    """
    if name == MUX:
        return _mux(config, depth)
    if name == KECCAK256_PREIMAGE:
        return OpcodeTracer(name)
    if name == ERC7562:
        return _erc7562(config)
    native = _native(name, config)
    if native is not None:
        return native
    return JavaScriptProgram(_well_formed(name), _json(config).decode())


def _erc7562(config: Any) -> OpcodeTracer:
    """Return an erc7562Tracer. As in geth, `stackTopItemsSize` has no effect."""
    given = decoding.struct(config, "native.erc7562TracerConfig", _ERC7562_FIELDS)
    if given.get("stackTopItemsSize", 0) < 0:
        raise ValueError("stackTopItemsSize is negative")
    ignored = IGNORED_OPCODES
    if "ignoredOpcodes" in given:
        # geth keeps the lowest byte.
        found = {
            decoding.uint64(each, _ERC7562_FIELDS["ignoredOpcodes"]) & 0xFF
            for each in given["ignoredOpcodes"]
        }
        ignored = tuple(sorted(found))
    return OpcodeTracer(ERC7562, ignored, given.get("withLog", False))


def _native(name: str, config: Any) -> NativeTracer | None:
    """Return a tracer that is not a mux, None for an unknown name."""
    if name not in _FLAGS:
        return None
    struct, flags = _FLAGS[name]
    if not struct:
        return NativeTracer(name)
    fields = {flag: Field(f"{struct}.{flag}", "bool") for flag in flags}
    given = decoding.struct(config, f"native.{struct}", fields)
    on = frozenset(flag for flag, value in given.items() if value)
    if on >= {"diffMode", "includeEmpty"}:
        raise ValueError("cannot use diffMode with includeEmpty")
    return NativeTracer(name, on)


def _mux(config: Any, depth: int) -> NativeTracer | TracerGroup:
    """Return a muxTracer. config: name → options of each tracer."""
    if config is None:
        config = {}
    if type(config) is not dict:
        go_type = "map[string]json.RawMessage"
        raise ValueError(decoding.mismatch(kind(config), go_type))
    if depth == _MAX_MUX_DEPTH:
        raise ValueError(f"{MUX} is nested more than {_MAX_MUX_DEPTH} times")
    members = [
        (name, _tracer(name, config[name], depth + 1)) for name in sorted(config)
    ]
    native = tuple(each for _, each in members if isinstance(each, NativeTracer))
    if len(native) == len(members):
        return NativeTracer(MUX, inner=native)
    group = TracerGroup(tuple(members))
    if _names(group).count(JAVASCRIPT) > _MAX_MUX_PROGRAMS:
        raise ValueError(f"{MUX} takes at most {_MAX_MUX_PROGRAMS} JavaScript tracers")
    return group


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
    """Return a text with lone surrogates replaced, as Go's decoder does."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def block_trace_options(value: Any, source: Text | None = None) -> TraceOptions:
    """Parse the options of a block's traces. Raises: as `trace_options`."""
    options = trace_options(value, source)
    if options.fork is not None:
        raise ValueError("fork is an option of traces of single transactions and calls")
    return options


TRANSACTION_OPTIONS = Param(
    "options",
    trace_options,
    TRANSACTION_TRACE_OPTIONS,
    required=False,
    default=DEFAULT,
    summary="The tracer and its options; the struct logger by default. fork: the name of a "
    "fork by whose rules the transaction is executed.",
    reads_text=True,
)

OPTIONS = Param(
    "options",
    block_trace_options,
    TRACE_OPTIONS,
    required=False,
    default=DEFAULT,
    summary="The tracer and its options; the struct logger by default.",
    reads_text=True,
)
