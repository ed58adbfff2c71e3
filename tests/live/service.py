"""The service as started by `manage.py serve`, which follows a node."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import psycopg

from config import demo
from config.embedded import postgres
from config.embedded.redis import RedisServer
from config.env import BASE_DIR
from tests.live.nodes import RpcError, batch
from tests.support.ports import free_port
from tests.support.waiting import PATIENCE_SECONDS, wait_until

MANAGE = str(BASE_DIR / "manage.py")
NETWORK = demo.LIVE_NETWORK


class Reorganisation(NamedTuple):
    """A row of the model `Reorganisation`."""

    fork_number: int
    old_hash: str
    new_hash: str
    depth: int
    added: int


class Service:
    """A running service, with a key for all methods without limits."""

    def __init__(
        self, folder: Path, environ: dict[str, str], network: str = NETWORK
    ) -> None:
        """network: slug of the network that is called."""
        run = json.loads((folder / "run.json").read_text())
        self._folder, self._key = folder, run["debug_api_key"]
        self._network = network
        self.environ = environ
        self.url = f"{run['base_url']}/{network}/v3/{self._key}"
        socket = run["base_url"].replace("http:", "ws:")
        self.socket_url = f"{socket}/{network}/ws/v3/{self._key}"
        self._database = postgres.address(folder)
        self._client = httpx.Client(timeout=PATIENCE_SECONDS, trust_env=False)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def manage(self, *arguments: str) -> str:
        """Run a management command and return what it prints."""
        done = subprocess.run(
            [sys.executable, MANAGE, *arguments],
            env=self.environ,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def follow(self, network: str, genesis: dict[str, Any], upstream: str) -> Service:
        """Add a network that follows a node, and return the service for calls to it."""
        file = self._folder / f"{network}.json"
        file.write_text(json.dumps(genesis))
        source = ("--genesis", str(file), "--upstream", upstream)
        self.manage("add_network", network, *source)
        self.manage("configure_network", network, "--no-total-difficulty")
        self.manage("grant", self._key, "--network", network)
        added = Service(self._folder, self.environ, network)
        wait_until(added.is_prepared)
        return added

    def status(self) -> Any:
        """Return the output of `network_status`."""
        return json.loads(self.manage("network_status", self._network, "--json"))

    def rows(self, query: str, *parameters: Any) -> list[Any]:
        """Return rows of the database."""
        with psycopg.connect(self._database) as connection:
            return connection.execute(query, parameters).fetchall()

    def reorganisations(self) -> list[Reorganisation]:
        """Return all reorganisations of the network, the oldest first."""
        rows = self.rows(
            "SELECT fork_number, '0x' || encode(old_hash, 'hex'),"
            " '0x' || encode(new_hash, 'hex'), depth, added"
            " FROM nodeapi_reorganisation JOIN networks_network AS network"
            " ON network.id = network_id WHERE slug = %s"
            " ORDER BY nodeapi_reorganisation.id",
            self._network,
        )
        return [Reorganisation(*row) for row in rows]

    def batch(self, calls: Iterable[tuple[Any, ...]]) -> list[dict[str, Any]]:
        """Return the responses, `{"result": …}` or `{"error": …}`, in the calls' order."""
        return batch(self._client, self.url, calls)

    def call(self, method: str, *params: Any) -> Any:
        """Return the result of a call. Raises: RpcError."""
        (answer,) = self.batch([(method, *params)])
        if "error" in answer:
            raise RpcError(f"{method}: {answer['error']}")
        return answer["result"]

    def is_prepared(self) -> bool:
        """Return whether the network has been imported for the first time."""
        try:
            self.call("eth_gasPrice")
        except RpcError:
            return False
        return True

    def head(self) -> int:
        """Return the number of the newest block."""
        return int(self.call("eth_blockNumber"), 16)


@contextmanager
def serving(
    genesis: dict[str, Any], upstreams: Sequence[str], log_file: Path
) -> Iterator[Service]:
    """Run `manage.py serve` with a live network. Its log must be clean afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="portcullis-live-"))
    environ = {**os.environ, "VAR_DIR": str(folder), "PORT": str(free_port())}
    for name in ("DATABASE_URL", "REDIS_URL", "DJANGO_SETTINGS_MODULE"):
        environ.pop(name, None)
    genesis_file = folder / "genesis.json"
    genesis_file.write_text(json.dumps(genesis))
    urls = [part for url in upstreams for part in ("--upstream", url)]
    command = [sys.executable, MANAGE, "serve", *urls, "--genesis", str(genesis_file)]
    try:
        with (
            log_file.open("wb") as log,
            subprocess.Popen(
                command, env=environ, stdout=subprocess.PIPE, stderr=log, text=True
            ) as process,
        ):
            try:
                assert process.stdout is not None
                for line in process.stdout:
                    if "Ctrl-C stops everything" in line:
                        break
                else:
                    raise AssertionError(log_file.read_text()[-3000:])
                service = Service(folder, environ)
                with psycopg.connect(postgres.address(folder)) as connection:
                    connection.execute("DELETE FROM keys_plan")  # no key is limited
                service.manage("configure_network", NETWORK, "--no-total-difficulty")
                try:
                    wait_until(service.is_prepared)
                    yield service
                finally:
                    service.close()
            finally:
                process.terminate()
                process.wait()
    finally:
        RedisServer(folder).stop()
        postgres.PostgresServer(folder).stop()
        shutil.rmtree(folder)
    assert "Traceback" not in log_file.read_text(), log_file.read_text()[-5000:]
