"""A network that follows a simulated upstream, for the benchmarks."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from bench.upstream import Upstream
from config import env, services
from networks.models import Network
from networks.services import add_upstream
from nodeapi.chain.database import importer_connection
from nodeapi.chain.networks import open_network

PATIENCE_SECONDS = 300
POLL_SECONDS = 0.02
"""Seconds between two reads of the head. More reads would take time from the follower."""


def make_network(slug: str, genesis_path: Path, node: Upstream) -> None:
    """Create a network with an upstream, unless it exists."""
    with importer_connection() as connection:
        genesis = json.loads(genesis_path.read_text())
        network_id = open_network(connection, slug, genesis=genesis)
    add_upstream(network=Network.objects.get(pk=network_id), url=node.url)


@contextmanager
def follower(slug: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run `manage.py follow --one` for a network during a `with` block."""
    process = subprocess.Popen(
        [sys.executable, str(env.BASE_DIR / "manage.py"), "follow", "--one", slug],
        env=services.child_environment(),
        cwd=env.BASE_DIR,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@contextmanager
def paused(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Suspend a process during a `with` block."""
    os.kill(process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGCONT)


def follow(slug: str, node: Upstream, blocks: Sequence[bytes], head: bytes) -> float:
    """Let the upstream announce blocks. Return the seconds until the last is our head.

    The time begins with the upstream's notification, and ends when a reader of the
    database sees the head. blocks: RLP. head: hash of the last one.
    Raises: TimeoutError.
    """
    began = node.show(blocks)
    return wait_for_head(slug, head) - began


def wait_for_head(slug: str, head: bytes, seconds: float = PATIENCE_SECONDS) -> float:
    """Wait for a network's head, and return the `time.monotonic` at which it was seen.

    Raises: TimeoutError.
    """
    deadline = time.monotonic() + seconds
    while (now := time.monotonic()) < deadline:
        found = Network.objects.values_list("head_hash", flat=True).get(slug=slug)
        if found is not None and bytes(found) == head:
            return now
        time.sleep(POLL_SECONDS)
    raise TimeoutError(f"the network {slug} did not follow its upstream")
