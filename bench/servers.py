"""The servers that receive load: the service, and the minimal application beside it.

Servers share one processor core, and the load generator has the other one. PostgreSQL may
use both.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from django.db import connection as django_connection

from bench.ceiling import SMALLEST
from bench.loadgen import Job, Loadgen
from bench.questions import http_request
from bench.rows import Row, median_ratio
from bench.turns import rounds
from server import supervisor

CEILING = "ceiling"
SERVICE = "config.asgi:application"


@dataclass(frozen=True, slots=True)
class Measured:
    """The result of one load on one server."""

    rate: float
    """Requests per second."""
    p50_ms: float
    p99_ms: float
    processor_seconds: float
    """Processor time of the server process per request."""


@dataclass(frozen=True, slots=True)
class Target:
    """A running server that receives load."""

    name: str
    port: int
    pids: list[int]
    inner_port: int = 0
    """Port of the first worker's metrics, 0 if there is none."""

    def load(self, generator: Loadgen, job: Job) -> Measured:
        """Run a load on this server, and measure the server's processor time."""
        before = sum(map(processor_seconds, self.pids))
        load = generator.load(job)
        spent = sum(map(processor_seconds, self.pids)) - before
        # The load is without the first answer on each connection.
        answers = load.requests + job.connections
        return Measured(load.rate, load.p50_ms, load.p99_ms, spent / answers)


def in_turn(
    generator: Loadgen, jobs: Mapping[str, tuple[Target, Job]], most: int
) -> dict[str, list[Measured]]:
    """Run each job in each round; return the results by the jobs' names.

    most: the maximum number of rounds.
    """
    found: dict[str, list[Measured]] = {name: [] for name in jobs}
    for _ in rounds(most):
        for name, (target, job) in jobs.items():
            found[name].append(target.load(generator, job))
    return found


def rate_rows(
    bench: str,
    case: str,
    found: Mapping[str, Sequence[Measured]],
    required: str | None = None,
) -> list[Row]:
    """Return the rate of each job of `in_turn`, compared with that of the first job.

    required: of the ratios.
    """
    rates = {name: [one.rate for one in series] for name, series in found.items()}
    first = next(iter(rates))
    return [
        Row(
            bench,
            f"{case}, {name}",
            median(series),
            "requests/s",
            *(
                ()
                if name == first
                else (median_ratio(series, rates[first]), first, required)
            ),
        )
        for name, series in rates.items()
    ]


def processor_seconds(pid: int) -> float:
    """Return the processor time that all threads of a process have used, in seconds.

    Source: https://docs.kernel.org/scheduler/sched-stats.html
    """
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 10**9


def processor_seconds_of(pids: Sequence[int]) -> float:
    """Return the processor time of processes and of their children."""
    found = list(pids)
    for pid in pids:
        for task in Path(f"/proc/{pid}/task").glob("*/children"):
            found += map(int, task.read_text().split())
    return sum(map(processor_seconds, found))


def resident_mib(pid: int) -> float:
    """Return the resident memory of a process in MiB.

    Source: https://man7.org/linux/man-pages/man5/proc_pid_status.5.html
    """
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"process {pid} has ended")


@contextmanager
def serving(
    name: str,
    application: str,
    settings: str = "config.settings",
    cores: set[int] | None = None,
    workers: int = 1,
    environ: Mapping[str, str] | None = None,
    with_metrics: bool = False,
) -> Iterator[Target]:
    """Run a server with the same supervisor as `make run`, pinned to processor cores.

    environ: additional environment variables.
    """
    listeners = supervisor.listen("127.0.0.1", 0, workers)
    inner = supervisor.listen("127.0.0.1", 0, 1) if with_metrics else []
    given = {**os.environ, "DJANGO_SETTINGS_MODULE": settings, **(environ or {})}
    ports = [each.getsockname()[1] for each in (listeners[0], *inner)]
    with supervisor.Server(listeners, given, application, inner=inner) as running:
        for pid in running.pids:
            if cores:
                os.sched_setaffinity(pid, cores)
        yield Target(name, ports[0], running.pids, ports[1] if inner else 0)


@contextmanager
def serving_ceiling(cores: set[int] | None = None) -> Iterator[Target]:
    """Serve the minimal application with uvicorn, pinned to processor cores."""
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    descriptor = listener.fileno()
    with subprocess.Popen(
        [sys.executable, "-m", "bench.ceiling", str(descriptor)],
        pass_fds=[descriptor],
    ) as process:
        listener.close()
        try:
            _wait_for(port, process)
            if cores:
                os.sched_setaffinity(process.pid, cores)
            yield Target(CEILING, port, [process.pid])
        finally:
            process.terminate()


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until a server answers."""
    request = http_request(f"/{SMALLEST}", b"").encode()
    while process.poll() is None:
        with (
            suppress(OSError),
            socket.create_connection(("127.0.0.1", port), timeout=1) as client,
        ):
            client.sendall(request)
            if client.recv(100):
                return
        time.sleep(0.05)
    raise RuntimeError("the ceiling's server did not start")


def postgres_pid() -> int:
    """Return the process id of PostgreSQL, whose children serve the connections."""
    with django_connection.cursor() as cursor:
        cursor.execute("SHOW data_directory")
        (folder,) = cursor.fetchone()
    return int((Path(folder) / "postmaster.pid").read_text().split("\n", 1)[0])


def split_cores() -> tuple[set[int], set[int]]:
    """Return the cores for the servers and for the load generator.

    With a single core, both are that core.
    """
    cores: Sequence[int] = sorted(os.sched_getaffinity(0))
    return {cores[0]}, {cores[-1]}
