"""JavaScript tracers over recorded cases, as a trace worker runs them over a block."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any

from nodeapi.chain.replay import Origin, Replay
from nodeapi.evm.blocks import Block
from nodeapi.tracers.javascript import JavaScriptTracer, tracer_source
from tests.support.geth_tracers import Case


@dataclass(frozen=True, slots=True)
class _Config:
    """What the execution of a block asks of a chain's config."""

    chain_id: int

    def is_dao_fork(self, number: int) -> bool:
        return False


def run_program(case: Case, tracer: str) -> Any:
    """Return what a bundled tracer, or a program, says of a case."""
    block = Block(case.header, [case.transaction], [], None)
    config: Any = _Config(case.chain_id)
    replay = Replay(Origin(block, case.fork, config, case.state, ()))
    seconds = 60.0
    program = JavaScriptTracer(
        tracer_source(tracer),
        json.dumps(dict(case.tracer_config)),
        time.monotonic() + seconds,
    )
    replay.trace(program, seconds)
    return json.loads(program.result())
