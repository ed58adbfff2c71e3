"""Execution speed with tracers that receive every instruction.

The benchmark runs in one process without a database. It measures the work of a trace
worker after the worker has read a block.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from bench.rows import Row
from evm.tracers.javascript import JavaScriptTracer, tracer_source
from evm.tracers.steps import StepTracer
from evm.tracers.struct_log import StructLogger, StructLogOptions
from nodeapi.chain.replay import Origin, Replay
from samples.builder import ChainBuilder
from samples.signers import Signer

Say = Callable[[str], None]

ALICE = Signer("alice")
LOOP = b"\xc0" * 20
CODE = "5b 6001 6002 01 6000 52 6000 51 6001 03 50 6000 56"
"""A loop of thirteen instructions: arithmetic, memory and a jump."""
GAS = 5_000_000
ROUNDS = 5
SECONDS = 600.0

EMPTY = "{ step: function() {}, fault: function() {}, result: function() {} }"
READS = (
    "{ step: function(log) { if (log.stack.length()) log.stack.peek(0); },"
    " fault: function() {}, result: function() {} }"
)


def on_demand(folder: Path, say: Say) -> list[Row]:
    """Measure each tracer on a transaction that executes a loop of cheap instructions."""
    say(f"on demand: {GAS / 1e6:.0f} Mgas, {ROUNDS} times for each tracer")
    origin = _origin()
    steps = int(_trace(origin, _program("opcountTracer"))[1])
    logged = _seconds(origin, lambda: StructLogger(StructLogOptions(), len))
    programs = {
        "empty step": EMPTY,
        "opcountTracer": "opcountTracer",
        "unigramTracer": "unigramTracer",
        "stack read": READS,
    }
    measured = {
        name: _seconds(origin, lambda source=source: _program(source))
        for name, source in programs.items()
    }
    return [
        Row("on_demand", "struct logger", GAS / logged / 1e6, "Mgas/s"),
        *(
            Row("on_demand", f"JavaScript, {name}", steps / seconds, "steps/s")
            for name, seconds in measured.items()
        ),
    ]


def _origin() -> Origin:
    chain = ChainBuilder(
        {
            "config": {"chainId": 1337, "homesteadBlock": 0},
            "difficulty": "0x20000",
            "gasLimit": hex(2 * GAS),
            "alloc": {
                ALICE.address.hex(): {"balance": hex(10**24)},
                LOOP.hex(): {"balance": "0x0", "code": "0x" + CODE.replace(" ", "")},
            },
        }
    )
    state, fork, parent = chain.state.copy(), chain.next_fork(), chain.head.hash
    chain.send(ALICE, LOOP, gas=GAS)
    return Origin(chain.block(), fork, chain.config, state, [parent])


def _program(source: str) -> JavaScriptTracer:
    return JavaScriptTracer(tracer_source(source), "{}", time.monotonic() + SECONDS)


def _trace(origin: Origin, tracer: StepTracer) -> tuple[float, bytes]:
    """Return the CPU seconds that a trace took, and its result."""
    replay = Replay(origin)
    begun = time.thread_time()
    replay.trace(tracer, SECONDS)
    result = tracer.result()
    return time.thread_time() - begun, result


def _seconds(origin: Origin, tracer: Callable[[], StepTracer]) -> float:
    return min(_trace(origin, tracer())[0] for _ in range(ROUNDS))
