"""Jobs, which the service sends to worker processes."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import orjson

from evm.tracers.erc7562 import IGNORED_OPCODES
from evm.tracers.native import NativeTracer
from evm.tracers.struct_log import StructLogOptions
from nodeapi.encoding import MAX_INDEX


@dataclass(frozen=True, slots=True)
class JavaScriptProgram:
    """A JavaScript tracer.

    source: the program, or the name of a bundled one.
    config: JSON for the program's `setup`.
    """

    source: str
    config: str = "{}"


@dataclass(frozen=True, slots=True)
class OpcodeTracer:
    """A native tracer that receives every instruction and therefore needs an execution.

    name: `keccak256PreimageTracer` or `erc7562Tracer`. The options are erc7562Tracer's.
    """

    name: str
    ignored_opcodes: tuple[int, ...] = IGNORED_OPCODES
    with_log: bool = False


@dataclass(frozen=True, slots=True)
class TracerGroup:
    """A muxTracer with at least one member that needs the execution.

    members: its tracers, by the names that the caller used; groups may be nested.
    """

    members: tuple[tuple[str, Executed | NativeTracer], ...]


@dataclass(frozen=True, slots=True)
class VmTracing:
    """Parity's result of a replayed transaction with its `vmTrace`.

    replay: the other members of the result, which trace records contain; a
        `NativeTracer` with the name `PARITY_REPLAY`.
    """

    replay: NativeTracer


Executed = StructLogOptions | JavaScriptProgram | OpcodeTracer | TracerGroup | VmTracing
"""Tracers for which a block is executed again; a group contains neither StructLogOptions
nor VmTracing."""

_KINDS: dict[str, Any] = {
    kind.__name__: kind for kind in (StructLogOptions, JavaScriptProgram)
}


def tracer_to_json(tracer: Executed | NativeTracer) -> dict[str, Any]:
    """Return a tracer as a JSON object; equal tracers give equal objects."""
    fields: dict[str, Any]
    if isinstance(tracer, NativeTracer):
        fields = tracer.as_json()
    elif isinstance(tracer, TracerGroup):
        fields = {
            "members": [[name, tracer_to_json(each)] for name, each in tracer.members]
        }
    elif isinstance(tracer, VmTracing):
        fields = {"replay": tracer.replay.as_json()}
    else:
        fields = asdict(tracer)
    return {"kind": type(tracer).__name__, **fields}


def tracer_from_json(fields: dict[str, Any]) -> Executed | NativeTracer:
    """Return the tracer that `tracer_to_json` has encoded."""
    kind = fields.pop("kind")
    if kind == NativeTracer.__name__:
        return NativeTracer.from_json(fields)
    if kind == TracerGroup.__name__:
        members = ((name, tracer_from_json(each)) for name, each in fields["members"])
        return TracerGroup(tuple(members))
    if kind == VmTracing.__name__:
        return VmTracing(NativeTracer.from_json(fields["replay"]))
    if kind == OpcodeTracer.__name__:
        ignored = tuple(fields.pop("ignored_opcodes"))
        return OpcodeTracer(ignored_opcodes=ignored, **fields)
    tracer: Executed = _KINDS[kind](**fields)
    return tracer


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceJob:
    """A range of a block's transactions, and the tracer for them.

    Equal jobs have equal results: the block is identified by its hash, and the rules
    under which a network has executed it never change.
    """

    network_id: int
    block_hash: bytes
    tracer: Executed | NativeTracer
    timeout: float
    """Seconds for each transaction."""
    first: int = 0
    last: int = MAX_INDEX
    """First and last transaction index, both included."""
    is_single: bool = False
    """Whether the result is that of transaction `first` alone instead of a list of
    `{"txHash":…,"result":…}`."""
    fork: str | None = None
    """The name of the fork by whose rules the transaction `first`, of a single result, is
    executed; None for those of its block."""

    def encode(self) -> bytes:
        """Return the job as JSON; equal jobs give equal bytes."""
        fields = {name: getattr(self, name) for name in self.__slots__}
        fields |= {
            "block_hash": self.block_hash.hex(),
            "tracer": tracer_to_json(self.tracer),
        }
        return orjson.dumps(fields, option=orjson.OPT_SORT_KEYS)

    @classmethod
    def decode(cls, data: bytes) -> TraceJob:
        """Return the job that `encode` has written."""
        fields = orjson.loads(data)
        fields["tracer"] = tracer_from_json(fields["tracer"])
        fields["block_hash"] = bytes.fromhex(fields["block_hash"])
        return cls(**fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskJob:
    """A task for a worker process. Equal jobs have equal results.

    task: a name in `nodeapi.tracing.tasks.TASKS`.
    block_hash: the block after which the task reads the state; b"" if it reads none.
    arguments: JSON: dictionaries with text keys, lists, text, integers, booleans, None.
        Bytes are hexadecimal digits with 0x.
    timeout: seconds of execution.
    past: values of states below a checkpoint that earlier attempts have not known; see
        `nodeapi.tracing.wire.past_to_json`. None without any.
    """

    network_id: int
    task: str
    block_hash: bytes
    arguments: Any
    timeout: float
    past: Any = None

    def encode(self) -> bytes:
        """Return the job as JSON; equal jobs give equal bytes."""
        fields = [
            self.task,
            self.network_id,
            self.block_hash.hex(),
            self.arguments,
            self.timeout,
        ]
        if self.past is not None:
            fields.append(self.past)
        return orjson.dumps(fields, option=orjson.OPT_SORT_KEYS)

    @classmethod
    def from_json(cls, fields: list[Any]) -> TaskJob:
        """Return the job whose encoding was parsed to these values."""
        task, network_id, block_hash, arguments, timeout, *past = fields
        return cls(
            task=task,
            network_id=network_id,
            block_hash=bytes.fromhex(block_hash),
            arguments=arguments,
            timeout=timeout,
            past=past[0] if past else None,
        )

    @classmethod
    def decode(cls, data: bytes) -> TaskJob:
        """Return the job that `encode` has written."""
        return cls.from_json(orjson.loads(data))
