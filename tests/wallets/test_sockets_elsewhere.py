"""Sockets on an ASGI server without the extension for writes: plain uvicorn."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator

import httpx
import pytest

from tests.support.dapps import Owner
from tests.support.service import test_database_url
from tests.support.waiting import wait_until
from tests.support.wallet import served_chains
from tests.wallets import test_sockets as sockets
from wallets import internal_key


@pytest.fixture(scope="module")
def base_url(module_db: None) -> Iterator[str]:
    served_chains()
    internal_key.ensure()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        command = [sys.executable, "-m", "uvicorn", "config.asgi:application"]
        descriptor = listener.fileno()
        process = subprocess.Popen(
            [*command, "--fd", str(descriptor), "--log-level", "warning"],
            env={**os.environ, "DATABASE_URL": test_database_url()},
            pass_fds=[descriptor],
        )
    try:
        wait_until(lambda: process.poll() is not None or is_ready(url))
        assert process.poll() is None
        yield url
    finally:
        process.terminate()
        process.wait()


def is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/readyz", trust_env=False).is_success
    except httpx.TransportError:
        return False


@pytest.fixture
def owner(base_url: str) -> Owner:
    return Owner(base_url)


test_statuses = sockets.test_a_socket_opens_for_a_good_token_and_for_nothing_else
test_flood = sockets.test_a_flood_is_refused_and_ends_with_the_socket
test_calls = sockets.test_a_session_is_asked_for_used_and_revoked
test_revocation = sockets.test_a_disconnected_dapp_loses_its_sockets_in_all_processes
