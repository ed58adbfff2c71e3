"""One run of the soak test (`bench.soak`). Django has to be set up to import this.

A simulated upstream has a new block every second and a reorganisation every minute. Each
minute the upstream, PostgreSQL or Redis is killed, in turn, and started again. At the
same time, clients make calls whose results are compared with the upstream's chain, and
the notifications of a socket are checked: no head and no log is missing or sent twice.
Only while something is down, and RECOVERY_SECONDS afterwards, may calls fail and
sockets be closed.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import time
from collections import Counter
from contextlib import ExitStack, suppress
from pathlib import Path
from statistics import mean
from typing import Any

import httpx
from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

from bench.endpoint import SERVICE, serving
from bench.followed import follower, make_network
from bench.keys import new_key
from bench.rows import Row
from bench.soak_chain import MAX_DEPTH, Shown, SoakChain
from bench.soak_checks import Events, Question, Wrong
from bench.sockets import resident_mib
from bench.token_chain import TOKEN
from bench.upstream import Upstream, free_port
from config.embedded.postgres import PostgresServer
from config.embedded.redis import RedisServer

SLUG = "soak"
FIRST_BLOCKS = 30
CLIENTS = 4
CALL_INTERVAL_SECONDS = 0.02
"""Minimum time between two calls of a client, so that the load is bounded."""

REORGANISE_AT, KILL_AT = 20, 40
"""Second of each minute at which a reorganisation happens or a component is killed."""
DOWN_SECONDS = 2
RECOVERY_SECONDS = 5
PATIENCE_SECONDS = 60
CALL_SECONDS = 30

KILLED = ("upstream", "PostgreSQL", "Redis")

PRINTED = 100
"""Maximum number of wrong responses and events that are printed."""

FLAT_MINUTES = 30
"""Duration from which memory has a requirement. In shorter tests, caches are still
being filled."""
MOST_GROWTH = 1.1
CACHE_BYTES = 32 * 2**20
"""Size of the cache. It is small, so that it is full in the first third of the test.
Later growth of the memory is a leak."""


class Soak:
    """One run."""

    def __init__(self, folder: Path, chain: SoakChain, genesis_path: Path) -> None:
        self._chain = chain
        self._genesis_path = genesis_path
        self._node = Upstream(genesis_path, free_port())
        self._node.show([each.raw for each in self._added(FIRST_BLOCKS)])
        self._postgres, self._redis = PostgresServer(folder), RedisServer(folder)
        self._disturbed_until = float("inf")
        self._is_node_down = False
        self._showing = asyncio.Lock()
        """The upstream's process answers one line at a time."""
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.recoveries: list[float] = []
        self.memory_mib: list[float] = []

    @property
    def node(self) -> Upstream:
        """The upstream that runs now."""
        return self._node

    def close(self) -> None:
        """End the upstream."""
        self._node.kill()

    async def run(self, port: int, key: str, pids: list[int], minutes: float) -> None:
        """Run for some minutes, with the service on a port."""
        self._base, self._key, self._pids = f"127.0.0.1:{port}", key, pids
        async with httpx.AsyncClient(timeout=CALL_SECONDS, trust_env=False) as client:
            await self._recovered(client)
            self._disturbed_until = 0.0
            tasks = [
                *(asyncio.create_task(self._ask(client)) for _ in range(CLIENTS)),
                asyncio.create_task(self._listen()),
                asyncio.create_task(self._grow()),
            ]
            try:
                await self._minutes(client, minutes, tasks)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    async def _minutes(
        self, client: httpx.AsyncClient, minutes: float, tasks: list[asyncio.Task[None]]
    ) -> None:
        """Kill a component and print a line every minute. Raises: a task's exception."""
        start = time.monotonic()
        minute = 0
        while time.monotonic() < start + 60 * minutes:
            began = start + 60 * minute
            await _until(began + KILL_AT)
            name = KILLED[minute % len(KILLED)]
            seconds = await self._kill(name, client)
            await _until(began + 60)
            for task in tasks:
                if task.done():
                    task.result()
            minute += 1
            self.memory_mib.append(sum(map(resident_mib, self._pids)))
            print(
                f"minute {minute}: head {self._chain.head.number}, "
                f"{self.counts['responses']:,} responses, "
                f"{self.counts['errors while disturbed']} errors while disturbed, "
                f"{self.counts['heads']} heads, {self.counts['logs']} logs, "
                f"{self.counts['reorganisations']} reorganisations, "
                f"{name} killed and recovered in {seconds:.1f} s, "
                f"{self.memory_mib[-1]:.0f} MiB, {len(self.wrong)} wrong, "
                f"load {os.getloadavg()[0]:.1f}",
                flush=True,
            )

    # The upstream

    def _added(self, count: int) -> list[Shown]:
        return [block for _ in range(count) for block in self._chain.grow()]

    async def _grow(self) -> None:
        """Add a block every second, and replace some of them every minute."""
        start = time.monotonic()
        depth = 1
        second = 0
        while True:
            second += 1
            await _until(start + second)
            place = second % 60
            if place == REORGANISE_AT - depth:
                self._chain.keep_branch()
            if place == REORGANISE_AT:
                blocks = self._chain.reorganise()
                depth = depth % MAX_DEPTH + 1
                self.counts["reorganisations"] += 1
            else:
                blocks = self._chain.grow()
            async with self._showing:
                if not self._is_node_down:
                    with suppress(OSError, RuntimeError, ValueError):  # just killed
                        raw = [block.raw for block in blocks]
                        await asyncio.to_thread(self._node.show, raw)

    # Failures

    async def _kill(self, name: str, client: httpx.AsyncClient) -> float:
        """Kill a component, start it again, and wait until the head is right.

        Return how many seconds that took after the start.
        """
        self._disturbed_until = float("inf")
        if name == "upstream":
            self._is_node_down = True
            await asyncio.to_thread(self._node.kill)
            await asyncio.sleep(DOWN_SECONDS)
            port = int(self._node.url.rpartition(":")[2])
            self._node = await asyncio.to_thread(Upstream, self._genesis_path, port)
            async with self._showing:
                raw = [each.raw for each in self._chain.line[1:]]
                self._is_node_down = False
                await asyncio.to_thread(self._node.show, raw)
        else:
            server = self._redis if name == "Redis" else self._postgres
            os.kill(self._pid(name), signal.SIGKILL)
            await asyncio.sleep(DOWN_SECONDS)
            await asyncio.to_thread(server.start)
        began = time.monotonic()
        recovered = await self._recovered(client) - began
        self.recoveries.append(recovered)
        self._disturbed_until = began + max(recovered, RECOVERY_SECONDS)
        return recovered

    def _pid(self, name: str) -> int:
        if name == "Redis":
            with self._redis.client() as client:
                return int(client.info("server")["process_id"])
        pid = self._postgres.pid()
        assert pid is not None
        return pid

    async def _recovered(self, client: httpx.AsyncClient) -> float:
        """Wait until the head or the one before it is served, and return the time.

        Raises: TimeoutError.
        """
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                newest = {each.hash for each in self._chain.line[-2:]}
                with suppress(httpx.HTTPError, Wrong):
                    block = await self._call(
                        client, "eth_getBlockByNumber", ["latest", False]
                    )
                    if block["hash"] in newest:
                        return time.monotonic()
                await asyncio.sleep(0.05)

    def _is_disturbed(self, since: float) -> bool:
        """Return whether a component was down or had just been restarted after `since`."""
        return since < self._disturbed_until

    # Customers

    async def _call(
        self, client: httpx.AsyncClient, method: str, params: list[Any]
    ) -> Any:
        """Return a result. Raises: httpx.HTTPError, Wrong."""
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        url = f"http://{self._base}/{SLUG}/v3/{self._key}"
        response = await client.post(url, json=body)
        if response.status_code != 200 or "result" not in response.json():
            raise Wrong(f"{method} {params}: {response.status_code} {response.text}")
        return response.json()["result"]

    async def _ask(self, client: httpx.AsyncClient) -> None:
        """Make calls, one after the other, and check their results."""
        chance = random.Random(id(asyncio.current_task()))
        asked_at = 0.0
        while True:
            await _until(asked_at + CALL_INTERVAL_SECONDS)
            question = Question(self._chain, chance)
            asked_at = time.monotonic()
            try:
                result = await self._call(client, question.method, question.params)
            except (httpx.HTTPError, Wrong) as error:
                self.counts["errors"] += 1
                if self._is_disturbed(asked_at):
                    self.counts["errors while disturbed"] += 1
                    await asyncio.sleep(0.1)
                else:
                    self._note(f"{type(error).__name__} {error}")
                continue
            self.counts["responses"] += 1
            try:
                question.check(result, is_disturbed=self._is_disturbed(asked_at))
            except Wrong as error:
                self._note(str(error))

    async def _listen(self) -> None:
        """Check the notifications of a socket, and open another one when it is closed."""
        while True:
            asked_at = time.monotonic()
            try:
                await self._listen_once()
            except (OSError, WebSocketException) as error:
                self.counts["sockets closed"] += 1
                # Its end is noticed after the failure.
                if not self._is_disturbed(max(asked_at, time.monotonic() - 1)):
                    self._note(f"the socket was closed: {error}")
                await asyncio.sleep(0.2)
            except Wrong as error:
                self.counts["wrong events"] += 1
                self._note(str(error))

    async def _listen_once(self) -> None:
        url = f"ws://{self._base}/{SLUG}/ws/v3/{self._key}"
        subscriptions = ["newHeads"], ["logs", {"address": f"0x{TOKEN.hex()}"}]
        calls = [
            {"jsonrpc": "2.0", "id": 1, "method": "eth_subscribe", "params": params}
            for params in subscriptions
        ]
        events = Events(self._chain)
        async with connect(url, max_size=None, compression=None) as socket:
            await socket.send(json.dumps(calls))
            heads, logs = (each["result"] for each in json.loads(await socket.recv()))
            takers = {heads: ("heads", events.head), logs: ("logs", events.log)}
            async for message in socket:
                params = json.loads(message)["params"]
                kind, take = takers[params["subscription"]]
                self.counts[kind] += 1
                take(params["result"])
        raise ConnectionError("closed by the server")

    def _note(self, text: str) -> None:
        self.wrong.append(text)
        if len(self.wrong) <= PRINTED:
            print(f"wrong: {text}", flush=True)

    def rows(self) -> list[Row]:
        """Return the final table."""
        third = max(len(self.memory_mib) // 3, 1)
        middle = mean(self.memory_mib[-2 * third : -third] or self.memory_mib)
        last = mean(self.memory_mib[-third:])
        is_long = len(self.memory_mib) >= FLAT_MINUTES
        return [
            Row("soak", "responses", self.counts["responses"], "checked"),
            Row(
                "soak",
                "errors while something was killed",
                self.counts["errors while disturbed"],
                "calls",
            ),
            Row(
                "soak",
                "heads and logs",
                self.counts["heads"] + self.counts["logs"],
                "events",
            ),
            Row(
                "soak",
                "sockets closed while something was killed",
                self.counts["sockets closed"],
                "sockets",
            ),
            Row("soak", "reorganisations", self.counts["reorganisations"], "times"),
            Row(
                "soak",
                "wrong responses and events",
                len(self.wrong),
                "found",
                required="<= 0",
            ),
            Row(
                "soak",
                "slowest recovery",
                max(self.recoveries),
                "s",
                required=f"<= {RECOVERY_SECONDS}",
            ),
            Row("soak", "memory in the middle third", middle, "MiB"),
            Row(
                "soak",
                "memory in the last third",
                last,
                "MiB",
                last / middle,
                "the middle third",
                f"<= {MOST_GROWTH}" if is_long else None,
            ),
        ]


def soak(folder: Path, minutes: float) -> list[Row]:
    """Run the test with the services of a VAR_DIR, and return the final table."""
    with ExitStack() as stack:
        chain = SoakChain()
        genesis_path = folder / "genesis.json"
        genesis_path.write_text(json.dumps(chain.genesis))
        run = Soak(folder, chain, genesis_path)
        stack.callback(run.close)
        make_network(SLUG, genesis_path, run.node)
        process = stack.enter_context(follower(SLUG))
        environ = {"NODEAPI_CACHE_BYTES": str(CACHE_BYTES)}
        target = stack.enter_context(serving("soak", SERVICE, environ=environ))
        pids = [*target.pids, process.pid]
        asyncio.run(run.run(target.port, new_key(), pids, minutes))
        return run.rows()


async def _until(moment: float) -> None:
    """Sleep until a time of `time.monotonic`."""
    await asyncio.sleep(max(moment - time.monotonic(), 0))
