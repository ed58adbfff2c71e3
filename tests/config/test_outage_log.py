"""The log of `manage.py serve` and its processes during an outage of the database."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from config.demo import NETWORK
from postgres.outages import WINDOW_SECONDS
from tests.support import commands, web
from tests.support.commands import descendants
from tests.support.installation import Installation, installation
from tests.support.ports import free_port
from tests.support.waiting import PATIENCE_SECONDS, wait_until


@contextmanager
def serving(own: Installation, port: int, log: Path) -> Iterator[None]:
    """Serve the installation's database. Only the test restarts this database."""
    environ = {**own.env, "DATABASE_URL": own.address}
    environ |= {"PORT": str(port), "WEB_CONCURRENCY": "2"}
    process = commands.start("serve", output=log, environ=environ)

    def is_up() -> bool:
        assert process.poll() is None, log.read_text()
        return "Ctrl-C stops everything" in log.read_text()

    try:
        wait_until(is_up)
        yield
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)


def statuses(base_url: str, key: str) -> list[int]:
    """Return the statuses of pages, calls and a log-in."""
    call = {"jsonrpc": "2.0", "id": 1, "method": "eth_blockNumber", "params": []}
    with web.Client(base_url=base_url) as http:
        answers: list[httpx.Response] = [
            http.get("/docs/networks"),
            http.post(f"/v3/{key}", json=call),
            http.post("/api/v1/keys", headers={"Authorization": "Bearer mt_x"}),
            http.get("/readyz"),
        ]
    return [answer.status_code for answer in answers]


def test_outage_is_one_line_for_all_processes_and_one_at_its_end(tmp_path: Path):
    log = tmp_path / "log"
    with installation() as own:
        key = own.new_key()
        port = free_port()
        base_url = f"http://127.0.0.1:{port}"
        with serving(own, port, log):
            with own.connect() as connection:
                connection.execute(
                    "INSERT INTO networks_upstream"
                    " (network_id, url, headers, position, is_enabled, note, created_at)"
                    " SELECT id, 'http://127.0.0.1:9', '{}', 0, true, '', now()"
                    " FROM networks_network"
                )
            wait_until(lambda: descendants(f"follow {NETWORK}"))
            wait_until(lambda: statuses(base_url, key) == [200, 200, 401, 200])
            stopped = time.monotonic()
            own.database.stop()
            wait_until(lambda: statuses(base_url, key)[3] == 503)
            failed = [statuses(base_url, key) for _ in range(3)]
            assert {status[1] for status in failed} == {503}
            own.database.start()
            wait_until(lambda: "available again" in log.read_text())
            wait_until(lambda: statuses(base_url, key) == [200, 200, 401, 200])
        minutes = (time.monotonic() - stopped) // WINDOW_SECONDS
    text = log.read_text()
    assert 1 <= text.count("the database is unavailable: ") <= 1 + minutes, text
    assert 1 <= text.count("the database is available again, after ") <= 1 + minutes
    assert "Traceback" not in text
    assert "the database failed" not in text
