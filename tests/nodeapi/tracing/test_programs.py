"""JavaScript tracers in the trace workers: always one entry for each transaction."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nodeapi.errors.execution import ExecutionTimedOut, TraceFailed
from nodeapi.tracing import process
from nodeapi.tracing.jobs import JavaScriptProgram, TraceJob
from nodeapi.tracing.pool import TracePool
from tests.nodeapi.tracing.pools import BLOCKS, LIMITS, run
from tests.support.waiting import PATIENCE_SECONDS

BLOCK = BLOCKS[3].header.hash
HASHES = ["0x" + transaction.hash.hex() for transaction in BLOCKS[3].transactions]
WORD = "0x" + "2a".rjust(64, "0")


async def trace(pool: TracePool, network_id: int, source: str, **options: Any) -> Any:
    program = JavaScriptProgram(source)
    values: dict[str, Any] = {"timeout": 60.0, "tracer": program, **options}
    job = TraceJob(network_id=network_id, block_hash=BLOCK, **values)
    stream = await pool.trace(job, "key")
    return json.loads(await stream.read())


def only_second(body: str) -> str:
    """Return a tracer that executes a statement in the second of three transactions.

    It recognizes the transaction by the sender's balance.
    """
    return (
        "{ seen: [], step: function(log, db) {"
        "    const nonce = db.getNonce(log.contract.getCaller());"
        f"   if (nonce === this.second) {{ {body} }}"
        "    this.seen.push(nonce); },"
        f"  second: {BLOCKS[3].transactions[1].nonce + 1},"
        "  fault: function() {},"
        "  result: function(ctx) { return [ctx.txIndex, toHex(ctx.output)]; } }"
    )


def test_a_bundled_tracer_answers_by_its_name(network_id: int) -> None:
    async def test(pool: TracePool) -> None:
        found = await trace(pool, network_id, "callTracerLegacy")
        assert [entry["txHash"] for entry in found] == HASHES
        assert {entry["result"]["output"] for entry in found} == {WORD}

    run(test, LIMITS)


def test_tracer_that_fails_in_one_transaction_leaves_an_error_there(
    network_id: int,
) -> None:
    async def test(pool: TracePool) -> None:
        source = only_second("throw new Error('boo');")
        first, second, third = await trace(pool, network_id, source)
        assert first == {"txHash": HASHES[0], "result": [0, WORD]}
        assert third == {"txHash": HASHES[2], "result": [2, WORD]}
        assert second.keys() == {"txHash", "error"}
        assert second["error"].startswith("Error: boo at step (<eval>:1:")
        assert second["error"].endswith("    in server-side tracer function 'step'")
        with pytest.raises(TraceFailed, match=r"^Error: boo at step"):
            await trace(pool, network_id, source, first=1, is_single=True)

    run(test, LIMITS)


def test_no_program_is_an_error_in_every_place(network_id: int) -> None:
    async def test(pool: TracePool) -> None:
        text = "ReferenceError: nonesuchTracer is not defined at <eval>:1:2"
        found = await trace(pool, network_id, "nonesuchTracer")
        assert found == [{"txHash": name, "error": text} for name in HASHES]

    run(test, LIMITS)


def test_tracer_that_does_not_end_is_stopped_and_the_worker_goes_on(
    network_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "GRACE_SECONDS", PATIENCE_SECONDS)

    async def test(pool: TracePool) -> None:
        source = only_second("while (true);")
        first, second, third = await trace(pool, network_id, source, timeout=2.0)
        assert second == {"txHash": HASHES[1], "error": "execution timeout"}
        assert (first["result"], third["result"]) == ([0, WORD], [2, WORD])
        (pid,) = pool.workers.pids
        assert len(await trace(pool, network_id, "opcountTracer")) == 3
        assert pool.workers.pids == [pid]

    run(test, LIMITS)


def test_tracer_that_cannot_be_stopped_ends_with_its_worker(network_id: int) -> None:
    """The engine checks the time every 10,000 calls, which takes too long here."""

    async def test(pool: TracePool) -> None:
        assert len(await trace(pool, network_id, "noopTracerLegacy")) == 3
        (pid,) = pool.workers.pids
        stubborn = (
            "const a = Array.from({ length: 1e6 }, (_, i) => i % 7);"
            " while (true) a.sort();"
        )
        with pytest.raises(ExecutionTimedOut):
            await trace(pool, network_id, only_second(stubborn), timeout=0.2)
        assert len(await trace(pool, network_id, "noopTracerLegacy")) == 3
        assert pid not in pool.workers.pids

    run(test, LIMITS)
