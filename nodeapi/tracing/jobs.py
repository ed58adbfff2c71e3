"""What is to be traced, as it goes from the service to a worker process."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import orjson

from nodeapi.encoding import MAX_INDEX
from nodeapi.tracers.native import NativeTracer
from nodeapi.tracers.struct_log import StructLogOptions


@dataclass(frozen=True, slots=True)
class JavaScriptProgram:
    """A tracer that is a program.

    source: the program, or the name of one that comes with the service.
    config: JSON, for the program's `setup`.
    """

    source: str
    config: str = "{}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceJob:
    """A slice of a block's transactions, and the tracer for them.

    Equal jobs have equal answers: a block is named by its hash, and its network's
    rules, once they have executed it, never change.
    """

    network_id: int
    block_hash: bytes
    tracer: StructLogOptions | JavaScriptProgram | NativeTracer
    timeout: float
    """Seconds for each transaction."""
    first: int = 0
    last: int = MAX_INDEX
    """Both included."""
    is_single: bool = False
    """Whether the answer is that of transaction `first` alone, not a list of
    `{"txHash":…,"result":…}`."""

    def encode(self) -> bytes:
        """Return the job as JSON; equal jobs give equal bytes."""
        tracer = self.tracer
        return orjson.dumps(
            {
                **asdict(self),
                "block_hash": self.block_hash.hex(),
                "tracer": tracer.as_json()
                if isinstance(tracer, NativeTracer)
                else asdict(tracer),
                "kind": type(tracer).__name__,
            },
            option=orjson.OPT_SORT_KEYS,
        )

    @classmethod
    def decode(cls, data: bytes) -> TraceJob:
        """Return the job that `encode` wrote."""
        fields = orjson.loads(data)
        kind, tracer = fields.pop("kind"), fields["tracer"]
        if kind == NativeTracer.__name__:
            fields["tracer"] = NativeTracer.from_json(tracer)
        elif kind == JavaScriptProgram.__name__:
            fields["tracer"] = JavaScriptProgram(**tracer)
        else:
            fields["tracer"] = StructLogOptions(**tracer)
        fields["block_hash"] = bytes.fromhex(fields["block_hash"])
        return cls(**fields)
