"""A database that stops, hangs and recovers, below a service of two processes."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice, takewhile
from pathlib import Path
from typing import Any

import httpx
import psutil
import psycopg
import pytest

from evm.blocks import decode_block
from tests.support import commands, sample, web
from tests.support.installation import Installation, installation
from tests.support.live import JSON_HEADERS, Live, live_service, request
from tests.support.waiting import PATIENCE_SECONDS, wait_until

BLOCKS = [decode_block(raw) for raw in sample.raw_blocks()]
HEAD = "0x" + BLOCKS[-1].header.hash.hex()
# Connections for look-ups, subscriptions and statistics.
CONNECTIONS_OF_A_WORKER = 4 + 1 + 1
QUERY_TIMEOUT = 3.0
GROWN = 40
"""Blocks of the network that grows."""
PROBE_SECONDS = 1.5
"""Seconds after which each process has failed to connect again."""
PAUSE_SECONDS = 0.03
"""Seconds between two requests of a client."""


@pytest.fixture(scope="module")
def own() -> Iterator[Installation]:
    with installation(with_chain=True) as own:
        yield own


@pytest.fixture(scope="module")
def live(own: Installation, django_db_setup: None) -> Iterator[Live]:
    env = {**own.env, "NODEAPI_QUERY_TIMEOUT": str(QUERY_TIMEOUT)}
    with live_service(workers=2, env=env) as live:
        live.secrets.append(own.new_key())
        yield live


def warm() -> Any:
    """Return a request whose response is cached."""
    return request("eth_getBlockByHash", HEAD, True)


def cold() -> Any:
    """Return a request whose response is not cached."""
    address = "0x" + random.randbytes(20).hex()
    return request("eth_getStorageAt", address, "0x0", HEAD)


def head() -> Any:
    return request("eth_blockNumber")


def batch() -> Any:
    return [cold(), warm()]


class Load:
    """Clients that make requests continuously, and record statuses with times."""

    def __init__(self, live: Live) -> None:
        self._url = f"{live.base_url}/v3/{live.secrets[0]}"
        self._stopped = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(kind,), daemon=True)
            for kind in (warm, cold, head, batch)
            for _ in range(3)
        ]
        self.answers: list[tuple[float, float, Callable[[], Any], int]] = []
        """For each response: times of request and response, kind, and the worst status in it."""
        self.errors: list[BaseException] = []

    def _run(self, kind: Callable[[], Any]) -> None:
        try:
            with web.Client(headers=JSON_HEADERS) as client:
                while not self._stopped.wait(PAUSE_SECONDS):
                    asked = time.monotonic()
                    answer = client.post(self._url, content=json.dumps(kind()))
                    answered = time.monotonic()
                    status = check_answer(kind, answer)
                    self.answers.append((asked, answered, kind, status))
        except BaseException as error:
            self.errors.append(error)

    def statuses(self, start: float, end: float, *kinds: Any) -> set[int]:
        """Return the statuses of requests that were sent and answered between two moments."""
        return {
            status
            for asked, answered, kind, status in list(self.answers)
            if start <= asked and answered < end and (not kinds or kind in kinds)
        }

    def wait_until_told(self, status: int, *kinds: Any) -> float:
        """Wait until the latest responses of some kinds have a status. Return since when.

        Several responses count, because each process notices the outage by itself.
        """
        start = time.monotonic()

        def last(kind: Any) -> list[int]:
            """Return the newest statuses, at most 12."""
            newest = takewhile(lambda answer: answer[1] > start, reversed(self.answers))
            found = (
                told
                for asked, _, about, told in newest
                if about is kind and asked > start
            )
            return [*islice(found, 12)]

        def are_told() -> bool:
            self.check()
            return all(last(kind) == 12 * [status] for kind in kinds)

        wait_until(are_told)
        return time.monotonic()

    def wait_for_answers(self, moment: float, *kinds: Any) -> None:
        """Wait until requests of each kind were answered that were made after a moment.

        Several responses count, so that both processes are included.
        """

        def are_answered() -> bool:
            self.check()
            found = Counter(
                kind for asked, _, kind, _ in list(self.answers) if asked > moment
            )
            return all(found[kind] >= 12 for kind in kinds)

        wait_until(are_answered)

    def wait_until_well(self) -> float:
        """Wait until all clients are answered successfully. Return since when."""
        return self.wait_until_told(200, warm, cold, head, batch)

    def check(self) -> None:
        if self.errors:
            raise self.errors[0]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join()


def check_answer(kind: Any, answer: httpx.Response) -> int:
    """Check that an answer is allowed while the database is unavailable.

    Returns its status; a batch has 200, hence 503 where one of its calls has failed.
    """
    told = answer.json()
    assert answer.headers["content-type"] == "application/json"
    if answer.status_code == 503:
        assert answer.headers["retry-after"] == "1"
    else:
        assert answer.status_code == 200
    failed = False
    for each in told if isinstance(told, list) else [told]:
        assert each["jsonrpc"] == "2.0" and each["id"] == 1
        if "error" in each:
            failed = True
            assert each["error"]["code"] == -32603
            assert each["error"]["data"]["reason"] == "unavailable"
    if kind is not batch:
        assert failed is (answer.status_code == 503)
    return 503 if failed else 200


class Gauge(threading.Thread):
    """Counts the service's connections to the database repeatedly."""

    def __init__(self, own: Installation) -> None:
        super().__init__(daemon=True)
        self._own = own
        self._stopped = threading.Event()
        self.most = 0

    def run(self) -> None:
        while not self._stopped.is_set():
            try:
                with self._own.connect() as connection:
                    while not self._stopped.wait(0.01):
                        self.most = max(self.most, count_connections(connection))
            except psycopg.OperationalError:
                self._stopped.wait(0.01)

    def __enter__(self) -> Gauge:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self.join()


def count_connections(connection: psycopg.Connection[Any]) -> int:
    row = connection.execute(
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'portcullis'"
    ).fetchone()
    assert row is not None
    return int(row[0])


def shut_down(own: Installation) -> None:
    own.database.stop()


def kill(own: Installation) -> None:
    """Kill the database server with all its processes."""
    for process in server_processes(own):
        process.kill()
    psutil.wait_procs(server_processes(own), timeout=PATIENCE_SECONDS)


def server_processes(own: Installation) -> list[psutil.Process]:
    marked = (own.database.data_dir / "postmaster.pid").read_text()
    postmaster = psutil.Process(int(marked.split("\n")[0]))
    return [postmaster, *postmaster.children()]


@pytest.mark.parametrize("end", [shut_down, kill])
def test_database_that_is_gone_means_503_until_it_is_back(
    live: Live, own: Installation, end: Callable[[Installation], None]
) -> None:
    lines = live.log().count("\n")
    with Gauge(own) as gauge, Load(live) as load:
        load.wait_until_well()
        end(own)
        gone = load.wait_until_told(503, cold, head, batch)
        load.wait_for_answers(gone + PROBE_SECONDS, cold, head, batch)
        starting = time.monotonic()
        assert load.statuses(gone, starting, cold, head, batch) == {503}
        own.database.start()
        back = load.wait_until_well()
        load.wait_for_answers(back, warm, cold, head, batch)
        assert load.statuses(back, time.monotonic()) == {200}
    load.check()
    assert 2 <= gauge.most <= 2 * CONNECTIONS_OF_A_WORKER
    assert live.log().count("\n") - lines < 200, live.log()


def test_connections_that_are_cut_are_made_anew(live: Live, own: Installation) -> None:
    cut = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE application_name = 'portcullis'"
    )
    with Gauge(own) as gauge, Load(live) as load:
        load.wait_until_well()
        for _ in range(3):
            with own.connect() as connection:
                assert connection.execute(cut).fetchall()
            back = load.wait_until_well()
        load.wait_for_answers(back, warm, cold, head, batch)
        assert load.statuses(back, time.monotonic()) == {200}
    load.check()
    assert gauge.most <= 2 * CONNECTIONS_OF_A_WORKER


@contextmanager
def hanging(own: Installation) -> Iterator[None]:
    """Suspend the database server's processes for a while."""
    stopped = server_processes(own)
    for process in stopped:
        os.kill(process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for process in stopped:
            os.kill(process.pid, signal.SIGCONT)


def test_database_that_hangs_means_503_until_it_moves(
    live: Live, own: Installation
) -> None:
    with Load(live) as load:
        load.wait_until_well()
        with hanging(own):
            hangs = load.wait_until_told(503, cold)
            load.wait_for_answers(hangs, cold)
            assert load.statuses(hangs, time.monotonic(), cold) == {503}
        back = load.wait_until_well()
        load.wait_for_answers(back, warm, cold, head, batch)
        assert load.statuses(back, time.monotonic()) == {200}
    load.check()


def test_head_follows_an_import_and_is_always_complete(
    live: Live, own: Installation, tmp_path: Path
) -> None:
    """The network was imported before, so that it is not preparing."""
    network = "--network", "growing", "--second", "--genesis", str(sample.GENESIS_FILE)
    chain, errors = tmp_path / "chain.rlp", tmp_path / "errors"
    chain.write_bytes(sample.raw_blocks()[0])
    own.manage("import_chain", *network, str(chain))
    chain.write_bytes(b"".join(sample.raw_blocks()[:GROWN]))
    documents: dict[str, str] = {}
    names = ["0x" + block.header.hash.hex() for block in BLOCKS]
    hashes = [
        ["0x" + each.hash.hex() for each in block.transactions] for block in BLOCKS
    ]
    importing = commands.start(
        *("import_chain", *network, "--batch", "1", str(chain)),
        output=tmp_path / "output",
        errors=errors,
        environ=own.env,
    )
    url = f"{live.base_url}/growing/v3/{live.secrets[0]}"
    newest, heads, deadline = 0, set(), time.monotonic() + 3 * PATIENCE_SECONDS
    with web.Client(headers=JSON_HEADERS) as client:
        while newest < GROWN:
            assert time.monotonic() < deadline
            calls = [
                request("eth_getBlockByNumber", "latest", True),
                request("eth_blockNumber"),
            ]
            answer = client.post(url, content=json.dumps(calls))
            if answer.status_code == 404 and not heads:
                continue  # the network does not exist yet
            block, after = answer.json()
            if "result" not in block or block["result"] is None:
                assert not heads, "the head is gone"
                continue
            found = block["result"]
            number = int(found["number"], 16)
            assert number >= newest
            assert int(after["result"], 16) >= number
            newest = number
            if number:
                assert found["hash"] == names[number - 1]
                listed = [each["hash"] for each in found["transactions"]]
                assert listed == hashes[number - 1]
            known = documents.setdefault(found["hash"], json.dumps(found))
            assert known == json.dumps(found)
            heads.add(number)
    assert importing.wait(PATIENCE_SECONDS) == 0, errors.read_text()
    assert len(heads) > 5
