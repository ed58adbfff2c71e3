"""A service that rejects requests for every reason, and third-party clients."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from tests.clients.programs import CAST, FOLDER, Cast, Curl, Ethers, Program, Viem
from tests.clients.token_chain import SLUG, TokenChain
from tests.support import web
from tests.support.live import Live, live_service
from tests.support.refusals import CHAIN_ID, ORIGIN, refusing_service
from tests.support.waiting import wait_until


class Desk:
    """The service, keys whose requests are rejected, and the log of requests."""

    def __init__(self, live: Live, keys: dict[str, str]) -> None:
        self.live = live
        self.keys = keys

    def url(self, key: str) -> str:
        """Return the URL with one of the keys."""
        return f"{self.live.base_url}/alpha/v3/{self.keys[key]}"

    def headers(self, **more: str) -> dict[str, str]:
        """Return headers that identify requests in the log, including repetitions."""
        return {"origin": ORIGIN, "x-request-id": uuid4().hex, **more}

    def seen(self, headers: dict[str, str]) -> list[dict[str, Any]]:
        """Return the log lines of the requests with these headers, once all are written."""
        last = uuid4().hex
        web.post(self.url("plain"), json=CHAIN_ID, headers={"x-request-id": last})
        wait_until(lambda: last in self.live.log())
        wanted = headers["x-request-id"]
        lines = self.live.log().splitlines()
        return [json.loads(line) for line in lines if wanted in line]


def require_npm() -> None:
    """Skip the test if npm has not installed the clients."""
    if not (FOLDER / "node_modules").is_dir() or shutil.which("node") is None:
        pytest.skip("`make test-clients` installs the clients")


@pytest.fixture(scope="module")
def desk(module_db: None) -> Iterator[Desk]:
    require_npm()
    env = {"LOG_FORMAT": "json", "REQUEST_LOG": "all"}
    with refusing_service(env) as (live, keys):
        yield Desk(live, keys)


@pytest.fixture(scope="module")
def tokens(module_db: None) -> TokenChain:
    """Return a chain with a token and a vault, which tests may extend."""
    return TokenChain(24)


@pytest.fixture(scope="module")
def tokens_live(tokens: TokenChain) -> Iterator[Live]:
    with live_service() as live:
        yield live


@pytest.fixture(scope="module")
def tokens_url(tokens_live: Live) -> str:
    """Return the address of the network with the token. The key may trace."""
    secret = tokens_live.new_key(may_trace=True)
    return f"{tokens_live.base_url}/{SLUG}/v3/{secret}"


@pytest.fixture(scope="module")
def viem() -> Iterator[Viem]:
    require_npm()
    program = Viem()
    yield program
    program.close()


@pytest.fixture(scope="module")
def ethers() -> Iterator[Ethers]:
    require_npm()
    program = Ethers()
    yield program
    program.close()


@pytest.fixture(scope="module")
def cast() -> Cast:
    if not CAST.exists():
        pytest.skip("npm has cast for Linux on x86-64 alone")
    return Cast()


@pytest.fixture(scope="module")
def curl() -> Curl:
    return Curl()


@pytest.fixture(params=["viem", "ethers", "cast", "curl"])
def program(desk: Desk, request: pytest.FixtureRequest) -> Program:
    return request.getfixturevalue(request.param)
