"""Tasks in worker processes: results, turns, and lost workers."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import psutil
import pytest

from evm.tracers.native import CALL, NativeTracer
from evm.tracers.struct_log import StructLogOptions
from jsonrpc.errors import InternalError, ServiceUnavailable
from jsonrpc.stream import Stream
from nodeapi.chain.database import importer_connection
from nodeapi.errors.execution import (
    ExecutionFailed,
    TaskResultTooLarge,
    TaskTimeout,
    TooManyExecutions,
)
from nodeapi.tracing.alarm import Alarm
from nodeapi.tracing.context import TaskTimedOut
from nodeapi.tracing.jobs import TaskJob, tracer_to_json
from nodeapi.tracing.pool import TracePool
from nodeapi.tracing.pool_limits import PoolLimits
from nodeapi.tracing.running import TaskRunner
from samples.builder import ChainBuilder
from samples.signers import Signer
from tests.nodeapi.tracing.pools import children, run
from tests.support import chains, copies
from tests.support.waiting import PATIENCE_SECONDS, until

ALICE = Signer("alice")
LOOP, SLOT, LONG, REVERT, LONG_REVERT, SLOW = (bytes([0xD0 + n]) * 20 for n in range(6))
CODES = {
    LOOP: "5b600056",  # an endless loop
    SLOT: "6000 35 54 6000 52 6020 6000 f3",  # returns the slot that the data names
    LONG: "6000 35 6000 f3",  # returns as many zero bytes as the data names
    REVERT: "602a 6000 52 6020 6000 fd",
    LONG_REVERT: "6000 35 6000 fd",  # reverts with as many zero bytes
    SLOW: "62013880 5b 6001 90 03 80 6004 57"  # counts down from 80,000, then as SLOT
    "6000 35 54 6000 52 6020 6000 f3",
}
STORAGE = {f"0x{slot:064x}": f"0x{slot + 7:x}" for slot in range(1, 40)}
GENESIS: dict[str, Any] = {
    "config": {"chainId": 1337, "homesteadBlock": 0, "eip150Block": 0}
    | {f"{fork}Block": 0 for fork in ("eip155", "eip158", "byzantium")},
    "difficulty": "0x20000",
    "gasLimit": hex(2**25),
    "alloc": {
        ALICE.address.hex(): {"balance": hex(10**24)},
        **{
            address.hex(): {"balance": "0x0", "code": "0x" + code.replace(" ", "")}
            for address, code in CODES.items()
        },
    },
}
GENESIS["alloc"][SLOT.hex()]["storage"] = STORAGE
LIMITS = PoolLimits(workers=1)
STRUCT_LOGS = tracer_to_json(StructLogOptions())
CALL_TRACER = tracer_to_json(NativeTracer(CALL))


def blocks() -> list[Any]:
    chain = ChainBuilder(GENESIS)
    chain.send(ALICE, ALICE.address)
    chain.block()
    return chain.blocks


BLOCKS = blocks()
HEAD = BLOCKS[0].header.hash


@pytest.fixture(scope="module")
def network(module_db: None) -> Iterator[int]:
    copies.chain("tasks", GENESIS, BLOCKS)
    with importer_connection() as connection:
        yield chains.network_id(connection, "tasks")


def call(network: int, to: bytes, word: int = 0, **options: Any) -> TaskJob:
    asked = {"to": "0x" + to.hex(), "input": f"0x{word:064x}"}
    arguments = {"call": asked, "gas_cap": options.pop("gas_cap", 50_000_000)}
    values: dict[str, Any] = {"timeout": 5.0, "block_hash": HEAD, **options}
    return TaskJob(network_id=network, task="call", arguments=arguments, **values)


def word(number: int) -> bytes:
    return f'"0x{number:064x}"'.encode()


async def until_busy(pid: int) -> None:
    """Wait until a worker has executed for longer than short tasks take."""
    process = psutil.Process(pid)
    before = process.cpu_times().user
    await until(lambda: process.cpu_times().user > before + 0.2)


def test_a_task_survives_the_way_to_the_worker(network: int) -> None:
    job = call(network, SLOT, 3)
    assert TaskJob.decode(job.encode()) == job


def test_many_tasks_at_once_are_answered_by_one_worker(network: int) -> None:
    async def test(pool: TracePool) -> None:
        asked = [pool.run(call(network, SLOT, slot), "key") for slot in range(40)]
        for slot, answer in enumerate(asked):
            found = await answer
            assert found.result == word(slot + 7 if slot else 0)
            assert found.gas_used > 21_000
        assert len(children()) == 1
        assert not pool.requests

    run(test, LIMITS)


def test_equal_tasks_share_an_execution_and_each_may_be_cancelled(network: int) -> None:
    async def test(pool: TracePool) -> None:
        job = call(network, SLOT, 5)
        same = [pool.run(job, n, owner="customer") for n in range(3)]
        same[0].cancel()
        assert [(await each).result for each in same[1:]] == [word(12)] * 2

    run(test, LIMITS)


def test_a_revert_is_an_error_with_its_data(network: int) -> None:
    async def test(pool: TracePool) -> None:
        with pytest.raises(ExecutionFailed) as caught:
            await pool.run(call(network, REVERT), "key")
        error = caught.value
        assert (error.code, error.message) == (3, "execution reverted")
        assert error.data == f"0x{0x2A:064x}"

    run(test, LIMITS)


def test_the_data_of_a_revert_is_limited_and_its_gas_is_counted(network: int) -> None:
    async def test(pool: TracePool) -> None:
        with pytest.raises(ExecutionFailed) as caught:
            await pool.run(call(network, LONG_REVERT, 1000), "key")
        assert caught.value.data == "0x" + "00" * 1000
        with pytest.raises(TaskResultTooLarge, match="more than 262144 bytes") as found:
            await pool.run(call(network, LONG_REVERT, 2**18), "key")
        assert found.value.gas_used > 21_000

    run(test, LIMITS)


def test_a_creation_fails_if_the_senders_nonces_are_used_up(network: int) -> None:
    alice = f"0x{ALICE.address.hex()}"
    used_up = {alice: {"nonce": hex(2**64 - 1)}}
    arguments = {"call": {"from": alice}, "state": used_up, "gas_cap": 100_000}
    creation = replace(call(network, SLOT), arguments=arguments)
    asked = {"from": alice, "to": f"0x{SLOT.hex()}"}
    plain = replace(creation, arguments={**arguments, "call": asked})
    traced = replace(
        creation,
        task="traceCall",
        arguments={**arguments, "tracer": CALL_TRACER, "seconds": 5.0},
    )

    async def test(pool: TracePool) -> None:
        for task in ("call", "estimate"):
            with pytest.raises(
                ExecutionFailed, match=r"^nonce uint64 overflow$"
            ) as caught:
                await pool.run(replace(creation, task=task), "key")
            assert caught.value.gas_used >= 53_000
        assert (await pool.run(plain, "key")).result == word(0)
        found = await pool.run(traced, "key")
        frame = json.loads(found.result)  # type: ignore[arg-type]
        assert (frame["type"], frame["error"]) == ("CREATE", "nonce uint64 overflow")
        assert (frame["gasUsed"], found.gas_used) == (hex(53_000), 53_000)

    run(test, LIMITS)


def test_an_overridden_balance_wraps_around(network: int) -> None:
    full = {"0x" + bytes(19).hex() + "99": {"balance": hex(2**256 - 1)}}
    asked = {"from": f"0x{ALICE.address.hex()}", "to": min(full), "value": "0x1"}
    arguments = {"call": asked, "state": full, "gas_cap": 50_000}
    plain = replace(call(network, SLOT), arguments=arguments)
    arguments = {**arguments, "tracer": STRUCT_LOGS, "seconds": 5.0}
    traced = replace(plain, task="traceCall", arguments=arguments)

    async def test(pool: TracePool) -> None:
        found = await pool.run(plain, "key")
        assert (found.result, found.gas_used) == (b'"0x"', 21_000)
        assert (await pool.run(traced, "key")).gas_used == 21_000

    run(test, LIMITS)


def test_a_call_that_does_not_end_is_interrupted_and_the_worker_stays(
    network: int,
) -> None:
    async def test(pool: TracePool) -> None:
        assert (await pool.run(call(network, SLOT, 1), "key")).result == word(8)
        pids = children()
        endless = call(network, LOOP, gas_cap=2**60, timeout=0.3)
        others = [call(network, SLOT, slot) for slot in range(1, 9)]
        asked = [pool.run(job, "key") for job in (*others[:4], endless, *others[4:])]
        with pytest.raises(TaskTimeout, match=r"^execution aborted \(timeout = 300ms"):
            await asked.pop(4)
        found = [(await each).result for each in asked]
        assert found == [word(slot + 7) for slot in range(1, 9)]
        assert children() == pids

    run(test, LIMITS)


def test_a_slow_call_that_misses_rows_does_not_take_turns_with_others(
    network: int,
) -> None:
    answered: list[int] = []

    def note(place: int, *outcome: object) -> None:
        answered.append(place)

    with importer_connection() as connection:
        runner = TaskRunner(
            Alarm(TaskTimedOut), lambda: None, lambda _: None, lambda: None
        )
        quick = call(network, SLOT, 1)
        for known in (call(network, SLOW, 1), quick):
            runner.run(lambda: connection, [known], note)
        answered.clear()
        runner.run(lambda: connection, [call(network, SLOW, 2), quick], note)
    assert answered == [0]  # the service may send the other task to another worker


def test_a_worker_that_dies_costs_one_task(network: int) -> None:
    async def test(pool: TracePool) -> None:
        assert (await pool.run(call(network, SLOT, 1), "key")).result == word(8)
        (pid,) = children()
        endless = call(network, LOOP, gas_cap=2**60, timeout=9.0)
        others = [call(network, SLOT, slot) for slot in range(1, 9)]
        asked = [pool.run(job, "key") for job in (endless, *others)]
        (worker,) = await until(lambda: pool.workers.executing)
        await until_busy(worker)
        os.kill(worker, signal.SIGKILL)
        assert worker == pid
        with pytest.raises(Exception, match="method handler crashed"):
            await asked.pop(0)
        found = [(await each).result for each in asked]
        assert found == [word(slot + 7) for slot in range(1, 9)]
        assert pool.workers.lost == 1

    run(test, LIMITS)


def test_tasks_survive_any_number_of_others_that_cost_a_worker(network: int) -> None:
    async def test(pool: TracePool) -> None:
        # The worker keeps the contract's rows, so that it executes the first one at once.
        warm = call(network, LOOP, gas_cap=30_000, timeout=9.0)
        with pytest.raises(ExecutionFailed, match="out of gas"):
            await pool.run(warm, "key")
        endless = [call(network, LOOP, n, gas_cap=2**60, timeout=9.0) for n in range(3)]
        asked = [pool.run(job, "key") for job in (*endless, call(network, SLOT, 1))]
        killed: list[int] = []
        for each in asked[:3]:
            (worker,) = await until(lambda: {*pool.workers.executing} - {*killed})
            await until_busy(worker)
            os.kill(worker, signal.SIGKILL)
            killed.append(worker)
            with pytest.raises(InternalError):
                await each
        assert (await asked[3]).result == word(8)

    run(test, LIMITS)


def test_long_results_come_from_files(network: int) -> None:
    async def test(pool: TracePool) -> None:
        sizes = [2**18, 2**18 + 32, 100]
        asked = [pool.run(call(network, LONG, size), "key") for size in sizes]
        for size, answer in zip(sizes, asked, strict=True):
            found = (await answer).result
            data = await found.read() if isinstance(found, Stream) else found
            assert isinstance(found, Stream) == (size > 1000)
            assert data == b'"0x' + b"00" * size + b'"'
        assert not pool.spooled.owners

    run(test, LIMITS)


def test_a_long_result_that_fails_leaves_its_file_to_the_next_task(
    network: int,
) -> None:
    def traced(to: bytes, gas: int) -> TaskJob:
        job = call(network, to, 2**18, gas_cap=gas)
        arguments = {**job.arguments, "tracer": STRUCT_LOGS, "seconds": 5.0}
        return replace(job, task="traceCall", arguments=arguments)

    async def test(pool: TracePool) -> None:
        with pytest.raises(TaskResultTooLarge):
            await pool.run(traced(LOOP, 2_000_000), "key")
        async with asyncio.timeout(PATIENCE_SECONDS):
            found = await pool.run(call(network, LONG, 2**18), "key")
        assert isinstance(found.result, Stream)
        assert await found.result.read() == b'"0x' + b"00" * 2**18 + b'"'

    run(test, replace(LIMITS, result_bytes=2**20))


def test_a_key_has_only_so_many_calls_at_once(network: int) -> None:
    async def test(pool: TracePool) -> None:
        asked = [pool.run(call(network, SLOT, slot), "key") for slot in range(3)]
        with pytest.raises(TooManyExecutions) as caught:
            await asked[2]
        assert caught.value.data is not None
        assert (await pool.run(call(network, SLOT, 9), "other")).result == word(16)
        await asyncio.gather(*asked[:2])
        assert (await pool.run(call(network, SLOT, 2), "key")).result == word(9)

    run(test, replace(LIMITS, tasks_per_key=2))


def test_large_calls_count_as_several(network: int) -> None:
    large = [call(network, SLOT, slot) for slot in range(3)]
    for job in large:
        job.arguments["call"]["input"] += "00" * 2**17  # four parts of 64 KiB

    async def test(pool: TracePool) -> None:
        asked = [pool.run(job, "key") for job in large]
        with pytest.raises(TooManyExecutions):
            await asked[2]
        others = [pool.run(call(network, SLOT, slot), "other") for slot in range(10)]
        with pytest.raises(ServiceUnavailable):
            await pool.run(call(network, SLOT, 20), "third")
        await asyncio.gather(*asked[:2], *others)
        assert (await pool.run(large[2], "key")).result == word(9)

    run(test, replace(LIMITS, tasks_per_key=10, waiting_tasks=20))


def test_an_unknown_block_is_geths_error(network: int) -> None:
    async def test(pool: TracePool) -> None:
        with pytest.raises(
            ExecutionFailed, match=r"^header for hash not found$"
        ) as caught:
            await pool.run(call(network, SLOT, block_hash=bytes(32)), "key")
        assert not caught.value.is_lasting

    run(test, LIMITS)


def test_estimate_counts_all_executions(network: int) -> None:
    async def test(pool: TracePool) -> None:
        job = replace(call(network, SLOT, 4), task="estimate")
        found = await pool.run(job, "key")
        limit = int(json.loads(found.result), 16)  # type: ignore[arg-type]
        assert 21_000 < limit < 25_000
        assert found.gas_used > 2 * 21_000

    run(test, LIMITS)


def test_a_customer_with_slow_tasks_leaves_a_worker_to_the_others(
    network: int,
) -> None:
    """The customer has as many slow tasks as there are workers, and further short ones."""

    async def test(pool: TracePool) -> None:
        assert (await pool.run(call(network, SLOT, 1), "quick")).result == word(8)
        spent: list[float] = []
        slow = [
            pool.run(
                call(network, LOOP, n, timeout=60.0, gas_cap=0),
                f"key {n}",
                owner="slow",
                spent=spent.append,
            )
            for n in (1, 2, 3)
        ]
        ended: list[object] = []
        for each in slow:
            each.when_done(ended.append)
        short = pool.run(call(network, SLOT, 3), "key 4", owner="slow")
        await until(lambda: pool.workers.executing)
        for slot in range(4, 8):
            found = await pool.run(call(network, SLOT, slot), "quick")
            assert found.result == word(slot + 7)
        # A worker executes what the customer has asked for first, for another customer.
        same = pool.run(call(network, SLOT, 3), "quick")
        assert (await same).result == word(10)
        assert not short.is_done
        assert not ended
        for each in (*slow, short):
            each.cancel()

    run(test, PoolLimits(workers=2))


def test_an_execution_is_charged_even_if_nobody_waits_for_it(network: int) -> None:
    async def test(pool: TracePool) -> None:
        spent: list[float] = []
        job = call(network, LOOP, 7, timeout=0.5, gas_cap=0)
        answer = pool.run(job, "key", spent=spent.append)
        await until(lambda: pool.workers.executing)
        answer.cancel()
        await until(lambda: bool(spent))
        assert 0 < spent[0] < PATIENCE_SECONDS

    run(test, LIMITS)
