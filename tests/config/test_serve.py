"""`manage.py serve`, which `make run` runs, from its start to its end."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psycopg
import pytest

from config.embedded.postgres import PostgresServer, address
from config.embedded.redis import RedisServer
from server.forking import Forked
from tests.support import commands, web
from tests.support.commands import descendants
from tests.support.ports import free_port, is_listening
from tests.support.simulator import genesis_of, grow, simulator, small_chain
from tests.support.waiting import PATIENCE_SECONDS, wait_until

README = Path(__file__).parents[2] / "README.md"

EXPECTED = {
    *("base_url", "network", "api_key", "debug_api_key"),
    *("admin_url", "admin_user", "admin_password", "sample"),
    *("dashboard_url", "customer_user", "customer_password"),
}


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """Yield a VAR_DIR for several starts in a row."""
    path = Path(tempfile.mkdtemp(prefix="portcullis-serve-"))
    yield path
    RedisServer(path).stop()
    PostgresServer(path).stop()
    shutil.rmtree(path)


def environment(folder: Path, port: int) -> dict[str, str]:
    """Return additions to the environment."""
    return {
        "VAR_DIR": str(folder),
        "PORT": str(port),
        "DATABASE_URL": "",
        "REDIS_URL": "",
    }


SERVE = [sys.executable, "manage.py", "serve"]

LIKE_MAKE = [
    *(sys.executable, "-c"),
    f"import subprocess; subprocess.run({[*SERVE, '--leave-with-parent']})",
]
"""A parent process that waits for the server. If it is killed, it can't stop the server."""

IS_UP = "Ctrl-C stops everything"


@contextmanager
def started(
    folder: Path, port: int, command: list[str] = SERVE
) -> Iterator[tuple[subprocess.Popen, str]]:
    """Start the command in a new Python; yield it with its output once it serves."""
    with subprocess.Popen(
        command,
        env={**os.environ, **environment(folder, port)},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            printed = ""
            while IS_UP not in printed:
                line = process.stdout.readline()
                assert line, "the server ended before it was up"
                printed += line
            yield process, printed
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            process.stdout.close()


@contextmanager
def serving(
    folder: Path, port: int, *arguments: str, **options: str
) -> Iterator[tuple[Forked, str]]:
    """Fork a process that serves; yield it with its output once it serves."""
    output, errors = (folder.parent / f"{folder.name}-{port}.{s}" for s in ("o", "e"))
    process = commands.start(
        *("serve", *arguments),
        output=output,
        errors=errors,
        environ={**environment(folder, port), **options},
    )

    def is_up() -> bool:
        assert process.poll() is None, errors.read_text()
        return IS_UP in output.read_text()

    try:
        wait_until(is_up)
        yield process, output.read_text()
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)
        output.unlink()
        errors.unlink()


def runs_nothing(folder: Path) -> bool:
    return PostgresServer(folder).pid() is None and not RedisServer(folder).listens()


def test_two_starts_in_a_row_serve_the_same(folder):
    port = free_port()
    with started(folder, port) as (process, printed):
        path = folder / "run.json"
        assert path.stat().st_mode & 0o777 == 0o600
        run = json.loads(path.read_text())
        assert set(run) == EXPECTED
        assert run["base_url"] == f"http://127.0.0.1:{port}"
        answers = paste(printed)
        assert all("result" in answer for answer in answers.values()), answers
        assert set(answers) >= {
            "eth_getStorageAt",
            "eth_getBlockByHash",
            "eth_getTransactionByBlockHashAndIndex",
        }
        assert int(answers["eth_getStorageAt"]["result"], 16) != 0
        block = answers["eth_getBlockByHash"]["result"]
        transaction = answers["eth_getTransactionByBlockHashAndIndex"]["result"]
        assert block["transactions"][0] == transaction["hash"]
        log_in(run)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=PATIENCE_SECONDS) == 0
    assert runs_nothing(folder)

    with serving(folder, port) as (process, again):
        assert again == printed
        assert json.loads(path.read_text()) == run
        assert paste(again) == answers
        ask_as_the_readme_does(run)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=PATIENCE_SECONDS) == 0
    assert runs_nothing(folder)


def test_second_server_has_its_own_run_file_and_the_same_version(folder):
    first, second = free_port(), free_port()
    own = folder / f"run-{second}.json"
    with serving(folder, first):
        written = (folder / "run.json").read_text()
        with serving(folder, second) as (process, printed):
            assert (folder / "run.json").read_text() == written
            assert own.stat().st_mode & 0o777 == 0o600
            run, main = json.loads(own.read_text()), json.loads(written)
            assert run["base_url"] == f"http://127.0.0.1:{second}"
            assert str(own) in printed
            assert {name for name in run if run[name] != main[name]} == {
                *("base_url", "admin_url", "dashboard_url")
            }
            process.terminate()
            assert process.wait(timeout=PATIENCE_SECONDS) == 0
        assert not own.exists()
        assert (folder / "run.json").read_text() == written
        with psycopg.connect(address(folder), autocommit=True) as older:
            (migration,) = older.execute(
                "DELETE FROM django_migrations WHERE app = 'sessions'"
                " RETURNING app, name, applied"
            ).fetchall()
            done = commands.run("serve", environ=environment(folder, second))
            assert done.returncode == 1
            assert done.stderr.startswith("CommandError: an older version is running")
            applied = "SELECT count(*) FROM django_migrations WHERE app = 'sessions'"
            assert older.execute(applied).fetchone() == (0,)
            older.execute(
                "INSERT INTO django_migrations (app, name, applied) VALUES (%s, %s, %s)",
                migration,
            )  # the tables are there, and other tests use them


def test_a_server_that_was_killed_is_followed_by_one_that_takes_over(folder):
    port = free_port()
    with serving(folder, port) as (process, printed):
        postgres = PostgresServer(folder).pid()
        process.kill()
        process.wait()
    wait_until(lambda: not is_listening(port))
    assert PostgresServer(folder).pid() == postgres
    with serving(folder, port) as (process, again):
        assert PostgresServer(folder).pid() == postgres
        assert again == printed
        process.terminate()
        assert process.wait(timeout=PATIENCE_SECONDS) == 0
    assert runs_nothing(folder)


def test_killed_services_are_restarted_under_the_same_workers(folder):
    """Pages, calls, limits and notifications of changes recover without a restart."""
    port = free_port()
    with serving(folder, port) as (process, _):
        run = json.loads((folder / "run.json").read_text())
        workers = descendants("server.worker")
        killed = [PostgresServer(folder).pid(), redis_pid(folder)]
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: is_ready(run["base_url"]))
        key = issue_key(folder)
        wait_until(lambda: block_number(run["base_url"], key).status_code == 200)
        log_in(run)
        revoke_key(folder, key)
        wait_until(lambda: block_number(run["base_url"], key).status_code == 401)
        assert descendants("server.worker") == workers
        assert PostgresServer(folder).pid() not in killed
        process.terminate()
        assert process.wait(timeout=PATIENCE_SECONDS) == 0
    assert runs_nothing(folder)


def redis_pid(folder: Path) -> int:
    with RedisServer(folder).client() as client:
        return client.info("server")["process_id"]


def is_ready(base_url: str) -> bool:
    """Return whether a worker is connected to the database and Redis again."""
    answer = web.get(f"{base_url}/readyz")
    return set(answer.json()["checks"].values()) == {"ok"}


def block_number(base_url: str, key: str) -> httpx.Response:
    call = {"jsonrpc": "2.0", "id": 1, "method": "eth_blockNumber", "params": []}
    return web.post(f"{base_url}/v3/{key}", json=call)


def issue_key(folder: Path) -> str:
    owner = ("--owner", "a@b.example")
    printed = commands.checked(
        *("issue_key", *owner, "--json"), environ=environment(folder, 0)
    )
    return json.loads(printed)["api_key"]


def revoke_key(folder: Path, key: str) -> None:
    reason = ("--reason", "test")
    commands.checked("revoke_key", key, *reason, environ=environment(folder, 0))


@pytest.mark.skipif(sys.platform != "linux", reason="needs PR_SET_PDEATHSIG")
def test_a_server_leaves_with_the_make_that_was_killed(folder):
    port = free_port()
    with started(folder, port, LIKE_MAKE) as (parent, _):
        parent.kill()
        parent.wait()
    wait_until(lambda: not is_listening(port) and runs_nothing(folder))


def test_an_upstream_is_followed_beside_the_sample_chain(folder, tmp_path):
    fails_without_genesis(folder)
    genesis = tmp_path / "genesis.json"
    genesis.write_text(json.dumps(genesis_of()))
    port = free_port()
    chain = grow(small_chain(), 3)
    with simulator(chain) as node:
        upstream = ["--upstream", node.server.url("http")]
        first = [*upstream, "--genesis", str(genesis)]
        with serving(folder, port, *first) as (process, printed):
            run = json.loads((folder / "run.json").read_text())
            wait_until(lambda: live_head(run) == 3)
            answers = paste(printed)
            assert answers["eth_blockNumber"]["result"] == "0x3"
            (followers,) = descendants("followers")
            os.kill(followers, signal.SIGKILL)
            node.show(grow(chain, 1))
            wait_until(lambda: live_head(run) == 4)
            process.terminate()
            assert process.wait(timeout=PATIENCE_SECONDS) == 0
        assert runs_nothing(folder)

        node.show(grow(chain, 1))
        with serving(folder, port, *upstream, FOLLOW="off") as (process, _):
            assert not descendants("followers")
            assert live_head(run) == 4
    wait_until(lambda: runs_nothing(folder))


def live_head(run: dict[str, str]) -> int | None:
    """Return the number of the live network's head."""
    networks = web.get(f"{run['base_url']}/readyz").json()["networks"]
    return networks["live"]["head"]


def fails_without_genesis(folder: Path) -> None:
    """Check that the first start with an upstream needs a genesis."""
    done = commands.run(
        *("serve", "--upstream", "http://127.0.0.1:9"),
        environ=environment(folder, free_port()),
    )
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert lines[-1] == (
        "CommandError: the first start with --upstream adds the network 'live', for "
        "which --genesis FILE is required"
    )
    assert runs_nothing(folder)


def paste(printed: str) -> dict[str, dict]:
    """Make the printed calls like curl, and return the results by method."""
    calls = re.findall(r"^curl -s (\S+) \\\n.*-d '(.*)'$", printed, re.MULTILINE)
    answers = {}
    for url, body in calls:
        headers = {"Content-Type": "application/json"}
        response = web.post(url, content=body, headers=headers)
        assert response.status_code == 200, response.text
        answers[json.loads(body)["method"]] = response.json()
    return answers


def ask_as_the_readme_does(run: dict[str, str]) -> None:
    """Make the call of the README, and compare the response with the README's."""
    call = README.read_text().partition("## A call")[2].partition("\n## ")[0]
    body = re.search(r"-d '(.*?)'", call, re.DOTALL).group(1)
    shown = re.search(r"```json\n(.*?)\n```", call, re.DOTALL).group(1)
    headers = {"Content-Type": "application/json"}
    url = f"{run['base_url']}/v3/{run['api_key']}"
    assert web.post(url, content=body, headers=headers).text == shown


def log_in(run: dict[str, str]) -> None:
    """Log in to the admin and to the dashboard with the printed passwords."""
    for place, who, shown in (
        ("admin", "admin", "Log out"),
        ("dashboard", "customer", "Demo with tracing"),
    ):
        with web.Client(follow_redirects=True) as client:
            page = client.get(run[f"{place}_url"])
            login = {
                "username": run[f"{who}_user"],
                "password": run[f"{who}_password"],
                "csrfmiddlewaretoken": client.cookies["csrftoken"],
            }
            answer = client.post(page.url, data=login)
            assert answer.status_code == 200
            assert answer.url == run[f"{place}_url"]
            assert shown in answer.text


def test_a_busy_port_is_one_line_and_starts_nothing(folder):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        done = commands.run("serve", environ=environment(folder, port))
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.splitlines() == [
        f"CommandError: 127.0.0.1:{port} is in use: choose another PORT"
    ]
    assert runs_nothing(folder)


@pytest.mark.parametrize(
    ("name", "value"), [("PORT", "http"), ("WEB_CONCURRENCY", "two")]
)
def test_a_setting_that_is_no_number_is_named(folder, name, value):
    done = subprocess.run(
        SERVE,
        env={**os.environ, **environment(folder, 0), name: value},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.endswith(f": {name} must be an integer, not {value!r}")
