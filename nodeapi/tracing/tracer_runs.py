"""One transaction or call under a tracer of any kind, without stored trace records.

Tracers that read trace records get a record of this execution, which is not stored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from eth_typing import Hash32

from evm.tracers.derived import PRESTATE, RecordedTransaction, code_hashes
from evm.tracers.erc7562 import Erc7562Tracer
from evm.tracers.frame_events import Events, FrameEvents, RecordingEvents
from evm.tracers.keccak_preimages import KeccakPreimages
from evm.tracers.mux import MuxTracer
from evm.tracers.native import ERC7562, KECCAK256_PREIMAGE, NativeTracer, derivation
from evm.tracers.struct_log import StructLogger, StructLogOptions
from evm.tracers.vm_trace import VmTracer
from nodeapi.documents.blocks import transaction_document
from nodeapi.tracing.jobs import (
    Executed,
    JavaScriptProgram,
    OpcodeTracer,
    TracerGroup,
    VmTracing,
)

if TYPE_CHECKING:
    from evm.blocks import Block
    from evm.tracers.steps import StepTracer
    from evm.world import World

Write = Callable[[bytes], object]

_NO_VM_TRACE = b',"vmTrace":null}'


def needs_record(tracer: Executed | NativeTracer) -> bool:
    """Return whether a tracer, or a member of it, reads a trace record."""
    if isinstance(tracer, TracerGroup):
        return any(needs_record(member) for _, member in tracer.members)
    return isinstance(tracer, NativeTracer | VmTracing)


def events_of(tracer: Executed | NativeTracer) -> Events:
    """Return a new watcher with the events that a tracer needs."""
    return RecordingEvents() if needs_record(tracer) else FrameEvents()


class TracerRun:
    """A tracer for one transaction. Its result is written after the transaction."""

    def __init__(
        self, tracer: Executed | NativeTracer, write: Write, deadline: float
    ) -> None:
        """Create the tracer, which may write parts of its result at once.

        deadline: of JavaScript, in the time of `time.monotonic()`.

        Raises: TracerError if a program is faulty.
        """
        self._tracer = tracer
        self._write = write
        self._deadline = deadline
        self._recorded: RecordedTransaction | None = None
        self._world: World | None = None
        self.steps = None if isinstance(tracer, NativeTracer) else self._new(tracer)
        """Receives instructions or call frames; None if records suffice."""

    def finish(self, events: Events, world: World, place: RecordedTransaction) -> None:
        """Write the result, or its end.

        events: the watcher of the transaction, of which `events_of` is the class.
        world: as the transaction has left it.
        place: the transaction, without a record.

        Raises: TracerError; RecordTooLarge.
        """
        if isinstance(events, RecordingEvents):
            record = events.records[-1]
            self._world = world
            self._recorded = replace(
                place,
                calls=record.calls,
                prestate=record.prestate,
                details=record.details,
            )
        tracer = self._tracer
        if isinstance(tracer, NativeTracer):
            self._write(self._derived(tracer))
            return
        assert self.steps is not None
        self._write(self.steps.result())
        if isinstance(tracer, VmTracing):
            rest = self._derived(tracer.replay).removesuffix(_NO_VM_TRACE)
            self._write(b"," + rest[1:] + b"}")

    def _new(self, tracer: Executed) -> StepTracer:
        if isinstance(tracer, StructLogOptions):
            return StructLogger(tracer, self._write)
        if isinstance(tracer, VmTracing):
            self._write(b'{"vmTrace":')
            return VmTracer(self._write)
        if isinstance(tracer, JavaScriptProgram):
            return new_program(tracer, self._deadline)
        if isinstance(tracer, OpcodeTracer):
            return new_opcode_tracer(tracer)
        executed: list[tuple[str, StepTracer]] = []
        recorded: list[tuple[str, Callable[[], bytes]]] = []
        for name, member in tracer.members:
            if isinstance(member, NativeTracer):
                recorded.append((name, partial(self._derived, member)))
            else:
                executed.append((name, self._new(member)))
        return MuxTracer(executed, recorded)

    def _derived(self, tracer: NativeTracer) -> bytes:
        """Return the result of a tracer that reads the record."""
        recorded, world = self._recorded, self._world
        assert recorded is not None
        assert world is not None
        one, codes = derivation(tracer), {}
        if PRESTATE in one.needs:
            codes = {name: world.code(Hash32(name)) for name in code_hashes(recorded)}
        return one.derive(recorded, codes)


def place_of(block: Block, index: int) -> RecordedTransaction:
    """Return a transaction of a block without its record. index: in the block."""
    header, transaction = block.header, block.transactions[index]
    document = transaction_document(transaction, header, index)
    return RecordedTransaction(
        header.hash, header.number, index, transaction.hash, document, b"", b"", b""
    )


def new_program(program: JavaScriptProgram, deadline: float) -> StepTracer:
    """Return a JavaScript tracer for one transaction.

    deadline: monotonic seconds. Raises: TracerError.
    """
    # The engine's package starts a thread. A fork server may have none.
    from evm.tracers.javascript import JavaScriptTracer, tracer_source

    source = tracer_source(program.source)
    return JavaScriptTracer(source, program.config, deadline)


def new_opcode_tracer(tracer: OpcodeTracer) -> StepTracer:
    """Return a native tracer of instructions for one transaction."""
    if tracer.name == KECCAK256_PREIMAGE:
        return KeccakPreimages()
    assert tracer.name == ERC7562
    return Erc7562Tracer(frozenset(tracer.ignored_opcodes), with_log=tracer.with_log)
