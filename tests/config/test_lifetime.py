"""Starts, stops and failures of the embedded services."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psycopg
import pytest

from config.embedded import places
from config.embedded.postgres import PostgresServer
from config.embedded.redis import RedisServer
from server import forking
from tests.support import commands
from tests.support.waiting import PATIENCE_SECONDS, wait_until


@contextmanager
def short_folder() -> Iterator[Path]:
    """Yield an empty folder with a short path."""
    path = Path(tempfile.mkdtemp(prefix="portcullis-life-"))
    yield path
    shutil.rmtree(path)


@pytest.fixture
def new_folder() -> Iterator[Path]:
    """Yield an empty VAR_DIR, and stop its services afterwards."""
    with short_folder() as path:
        yield path
        stop_everything(path)


@pytest.fixture(scope="module")
def used_folder() -> Iterator[Path]:
    with short_folder() as path:
        yield path


@pytest.fixture
def folder(used_folder: Path) -> Iterator[Path]:
    """Yield a VAR_DIR that other tests have used, and stop its services afterwards.

    In an empty one, the first start would make a database, which takes most of its time.
    """
    yield used_folder
    stop_everything(used_folder)


def stop_everything(var_dir: Path) -> None:
    RedisServer(var_dir).stop()
    PostgresServer(var_dir).stop()
    places.forget_socket_dir(var_dir)


class User:
    """A process that uses the services until it is stopped.

    restart: whether it restarts those that die.
    """

    def __init__(self, var_dir: Path, *, restart: bool = False) -> None:
        environ = {"VAR_DIR": str(var_dir), "DATABASE_URL": "", "REDIS_URL": ""}
        (output, stdout), (errors, stderr), (until, pipe) = (os.pipe() for _ in "123")
        self._process = forking.shared.start(
            "tests.support.forked:use_services",
            "restart" if restart else "",
            descriptors=[until],
            environ={**os.environ, **environ},
            output=stdout,
            errors=stderr,
        )
        for theirs in (stdout, stderr, until):
            os.close(theirs)
        self._output, self._errors = os.fdopen(output), os.fdopen(errors)
        self._pipe = os.fdopen(pipe, "w")

    def __enter__(self) -> User:
        return self

    def __exit__(self, *exception: object) -> None:
        self.kill()
        for opened in (self._output, self._errors, self._pipe):
            opened.close()

    def is_up(self) -> bool:
        return self._output.readline() == "up\n"

    def leave(self) -> tuple[int, str]:
        """Let the process end. Return its exit status and its log."""
        self._pipe.close()
        return self.ended()

    def ended(self) -> tuple[int, str]:
        """Wait until the process has ended. Return its exit status and its log."""
        log = self._errors.read()
        return self._process.wait(PATIENCE_SECONDS), log

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


def postgres_pid(var_dir: Path) -> int | None:
    return PostgresServer(var_dir).pid()


def redis_runs(var_dir: Path) -> bool:
    return RedisServer(var_dir).listens()


def redis_pid(var_dir: Path) -> int:
    with RedisServer(var_dir).client() as client:
        pid: int = client.info("server")["process_id"]
        return pid


@contextmanager
def endless_query(var_dir: Path) -> Iterator[None]:
    """Start a query that takes longer than any test."""
    with psycopg.connect(
        host=str(places.socket_dir(var_dir)), user="portcullis", autocommit=True
    ) as connection:
        text = "SELECT count(*) FROM generate_series(1, 1000000000000)"
        thread = threading.Thread(target=fails, args=(connection, text))
        thread.start()
        busy = "SELECT 1 FROM pg_stat_activity WHERE query = %s AND state = 'active'"
        wait_until(lambda: query(var_dir, busy, text))
        yield
        thread.join()


def fails(connection: psycopg.Connection, text: str) -> None:
    with suppress(psycopg.OperationalError):
        connection.execute(text)


def query(var_dir: Path, text: str, *parameters: object) -> tuple | None:
    with psycopg.connect(
        host=str(places.socket_dir(var_dir)), user="portcullis", autocommit=True
    ) as connection:
        cursor = connection.execute(text, parameters)
        return cursor.fetchone() if cursor.description else ()


def test_the_last_one_out_stops_what_the_first_one_started(folder):
    with User(folder) as first, User(folder) as second:
        assert first.is_up()
        assert second.is_up()
        pid = postgres_pid(folder)
        assert first.leave() == (0, "")
        assert postgres_pid(folder) == pid
        assert redis_runs(folder)
        assert query(folder, "SELECT 1") == (1,)
        assert second.leave() == (0, "")
        assert postgres_pid(folder) is None
        assert not redis_runs(folder)


def test_users_that_come_at_once_share_one_server(new_folder):
    with (
        User(new_folder) as first,
        User(new_folder) as second,
        User(new_folder) as third,
    ):
        assert all(user.is_up() for user in (first, second, third))
        assert query(new_folder, "SELECT 1") == (1,)
        assert [user.leave() for user in (first, second, third)] == 3 * [(0, "")]
    assert postgres_pid(new_folder) is None


def test_services_of_a_killed_user_are_taken_over_and_then_stopped(folder):
    with User(folder) as first:
        assert first.is_up()
        pid = postgres_pid(folder)
        first.kill()
    assert postgres_pid(folder) == pid
    with User(folder) as second:
        assert second.is_up()
        assert postgres_pid(folder) == pid
        assert second.leave() == (0, "")
    assert postgres_pid(folder) is None
    assert not redis_runs(folder)


def test_what_was_committed_survives_the_killing_of_everything(folder):
    with User(folder) as first:
        assert first.is_up()
        query(folder, "CREATE TABLE kept AS SELECT 7 AS value")
        first.kill()
    os.kill(postgres_pid(folder), signal.SIGKILL)
    RedisServer(folder).stop()
    # Another process may have the id in the stale file by now, such as this one.
    lines = (folder / "postgres/data/postmaster.pid").read_text().split("\n")
    (folder / "postgres/data/postmaster.pid").write_text(
        "\n".join([str(os.getpid()), *lines[1:]])
    )
    with User(folder) as second:
        assert second.is_up()
        assert query(folder, "SELECT value FROM kept") == (7,)
        assert second.leave() == (0, "")


def test_one_of_several_users_restarts_services_that_were_killed(folder):
    """The process that started them does not reap them, and a query is still running."""
    with ExitStack() as users:
        starter = users.enter_context(User(folder))
        assert starter.is_up()  # so that the services are its children
        first = users.enter_context(User(folder, restart=True))
        second = users.enter_context(User(folder, restart=True))
        assert first.is_up()
        assert second.is_up()
        killed = {"postgres": postgres_pid(folder), "redis": redis_pid(folder)}
        query(folder, "CREATE TABLE committed AS SELECT 7 AS value")
        with endless_query(folder):
            for pid in killed.values():
                os.kill(pid, signal.SIGKILL)
            wait_until(lambda: accepts(folder) and redis_runs(folder))
        assert query(folder, "SELECT value FROM committed") == (7,)
        assert postgres_pid(folder) != killed["postgres"]
        assert redis_pid(folder) != killed["redis"]
        assert starter.leave() == (0, "")
        log = "".join(user.leave()[1] for user in (first, second))
        assert log.count("the embedded PostgreSQL has exited and is restarted") == 1
        assert log.count("the embedded Redis has exited and is restarted") == 1
    assert postgres_pid(folder) is None
    assert not redis_runs(folder)


def test_redis_is_restarted_while_postgresql_can_not_be(folder):
    settings = folder / "postgres/data/postgresql.conf"
    with User(folder, restart=True) as user:
        assert user.is_up()
        working = settings.read_text()
        settings.write_text("nonsense")
        for pid in (postgres_pid(folder), redis_pid(folder)):
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: redis_runs(folder))
        assert postgres_pid(folder) is None
        settings.write_text(working)
        wait_until(lambda: accepts(folder))
        status, log = user.leave()
        assert status == 0
    assert log.count("the embedded Redis has exited and is restarted") == 1


def accepts(var_dir: Path) -> bool:
    return PostgresServer(var_dir).accepts("portcullis")


def test_a_half_made_cluster_is_made_anew(new_folder):
    draft = new_folder / "postgres" / "draft"
    draft.mkdir(parents=True)
    (draft / "PG_VERSION").write_text("18\n")
    with User(new_folder) as user:
        assert user.is_up()
        assert user.leave() == (0, "")
    assert not draft.exists()


def test_a_var_dir_too_long_for_sockets_works(new_folder):
    deep = new_folder / ("x" * 60) / ("y" * 60)
    with User(deep) as user:
        assert user.is_up()
        sockets = places.socket_dir(deep)
        assert sockets.stat().st_mode & 0o777 == 0o700
        assert query(deep, "SELECT 1") == (1,)
        assert user.leave() == (0, "")
    assert not sockets.exists()


def test_a_socket_folder_of_another_user_is_refused(new_folder):
    deep = new_folder / ("x" * 120)
    sockets = places.socket_dir(deep)
    sockets.write_text("in the way")
    try:
        with User(deep) as user:
            status, complaint = user.ended()
        assert status != 0
        assert "belongs to another user" in complaint
    finally:
        sockets.unlink()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs services as another user")
def test_root_needs_no_open_folder(new_folder):
    private = new_folder / "private"
    private.mkdir(mode=0o700)
    with User(private / "var") as user:
        assert user.is_up()
        owner = Path(f"/proc/{postgres_pid(private / 'var')}").stat().st_uid
        assert owner != 0
        assert user.leave() == (0, "")
    assert private.stat().st_mode & 0o777 == 0o700


def test_a_command_starts_and_stops_the_services_itself(folder):
    environ = {"VAR_DIR": str(folder), "DATABASE_URL": ""}
    script = "from django.db import connection as c; c.ensure_connection(); print('ok')"
    shell = ("shell", "--verbosity=0", "--command", script)
    assert commands.checked(*shell, environ=environ) == "ok\n"
    assert postgres_pid(folder) is None


def test_a_command_that_is_stopped_stops_its_services(folder):
    environ = {**os.environ, "VAR_DIR": str(folder)}
    environ.pop("DATABASE_URL", None)
    script = "import time; print('up', flush=True); time.sleep(60)"
    with subprocess.Popen(
        [sys.executable, "manage.py", "shell", "--verbosity=0", "--command", script],
        env=environ,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout.readline() == "up\n"
        assert postgres_pid(folder) is not None
        process.terminate()
        assert process.wait() == 143
    assert postgres_pid(folder) is None


@pytest.mark.parametrize("command", ["check", "help", "makemigrations --check"])
def test_commands_without_need_start_nothing(new_folder, command):
    commands.checked(*command.split(), environ={"VAR_DIR": str(new_folder)})
    assert not (new_folder / "services.lock").exists()


def test_services_that_were_stopped_are_gone_for_their_starter(folder):
    """Otherwise, Python warns at exit that a subprocess is still running."""
    script = (
        "import sys\nfrom config import services\nfrom config.embedded import processes\n"
        "for _ in range(3):\n    with services.running(): pass\n"
        "    assert not processes._started, processes._started\n"
    )
    environ = {**os.environ, "VAR_DIR": str(folder)}
    environ.pop("DATABASE_URL", None)
    environ.pop("REDIS_URL", None)
    subprocess.run(
        [sys.executable, "-W", "error::ResourceWarning", "-c", script],
        env=environ,
        check=True,
    )
