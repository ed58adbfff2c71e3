"""`manage.py follow`: one process for each network that has upstreams."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from networks.models import Network, Upstream
from networks.services import add_upstream
from nodeapi.chain.database import importer_connection
from nodeapi.chain.networks import open_network
from server import forking
from server.forking import Forked
from tests.support import commands
from tests.support.alive import is_alive
from tests.support.chains import head
from tests.support.commands import descendants
from tests.support.installation import installation
from tests.support.rows import add_block, hash_of, make_network
from tests.support.service import test_database_url
from tests.support.simulator import genesis_of, grow, simulator, small_chain
from tests.support.waiting import PATIENCE_SECONDS, wait_until

pytestmark = pytest.mark.django_db(transaction=True)


class Keeper:
    """A running `keep_followers`, whose followers write their process ids to files."""

    def __init__(self, folder: Path, slugs: tuple[str, ...], url: str) -> None:
        self._folder = folder
        self.log = folder / "log"
        with self.log.open("wb") as log:
            self.process = forking.shared.start(
                "tests.support.forked:keep_followers",
                *(str(folder), *slugs),
                environ={**os.environ, "DATABASE_URL": url},
                errors=log.fileno(),
            )

    def started(self, slug: str) -> list[int]:
        """Return the process ids of all followers of a network, in order."""
        path = self._folder / slug
        lines = path.read_text().splitlines(keepends=True) if path.exists() else []
        return [int(line) for line in lines if line.endswith("\n")]

    def running(self, slug: str) -> list[int]:
        """Return the process ids of the followers that run."""
        return [pid for pid in self.started(slug) if is_alive(pid)]

    def running_but(self, pid: int, slug: str) -> list[int]:
        """Return the process ids of the running followers except a killed one."""
        return [other for other in self.running(slug) if other != pid]


@contextmanager
def keeping(folder: Path, *slugs: str, url: str | None = None) -> Iterator[Keeper]:
    """Run the followers of the test database's networks."""
    keeper = Keeper(folder, slugs, url or test_database_url())
    try:
        yield keeper
    finally:
        keeper.process.kill()
        keeper.process.wait()


def network_with_genesis(slug: str, *, upstreams: int = 0) -> Network:
    network = make_network(slug, head_number=0, head_hash=hash_of(f"{slug}-0"))
    add_block(network, f"{slug}-0", 0)
    for number in range(upstreams):
        add_upstream(network=network, url=f"http://127.0.0.1:{9 + number}/secret")
    return network


def test_followers_start_and_stop_with_the_upstreams_of_their_networks(tmp_path):
    first = network_with_genesis("first", upstreams=2)
    network_with_genesis("files")
    with keeping(tmp_path) as keeper:
        (pid,) = wait_until(lambda: keeper.running("first"))
        # A network is added while the command runs.
        second = network_with_genesis("second", upstreams=1)
        wait_until(lambda: keeper.running("second"))
        # A network gets its first upstream.
        third = network_with_genesis("third")
        add_upstream(network=third, url="http://127.0.0.1:9")
        wait_until(lambda: keeper.running("third"))
        # One of two upstreams is disabled, then the only one, and another one is deleted.
        Upstream.objects.filter(pk=first.upstreams.first().pk).update(is_enabled=False)
        second.upstreams.update(is_enabled=False)
        third.upstreams.all().delete()
        wait_until(lambda: not keeper.running("second") + keeper.running("third"))
        assert keeper.started("first") == keeper.running("first") == [pid]
        second.upstreams.update(is_enabled=True)
        wait_until(lambda: keeper.running("second"))
        assert not keeper.started("files")


def test_a_killed_follower_is_replaced_and_a_stopped_command_leaves_none(tmp_path):
    network_with_genesis("first", upstreams=1)
    with keeping(tmp_path) as keeper:
        (pid,) = wait_until(lambda: keeper.running("first"))
        os.kill(pid, signal.SIGKILL)
        (other,) = wait_until(lambda: keeper.running_but(pid, "first"))
        keeper.process.terminate()
        assert keeper.process.wait(timeout=PATIENCE_SECONDS) == 0
        assert not is_alive(other)
        assert "follower first ended (status -9)" in keeper.log.read_text()


def test_followers_end_with_a_command_that_was_killed(tmp_path):
    network_with_genesis("first", upstreams=1)
    with keeping(tmp_path) as keeper:
        (pid,) = wait_until(lambda: keeper.running("first"))
        keeper.process.kill()
        wait_until(lambda: not is_alive(pid))


def test_only_the_networks_that_are_named_are_followed(tmp_path):
    for slug in ("first", "second"):
        network_with_genesis(slug, upstreams=1)
    with keeping(tmp_path, "second", "third") as keeper:
        wait_until(lambda: keeper.running("second"))
        # The third network is followed as soon as it exists.
        wait_until(lambda: "without upstream: third" in keeper.log.read_text())
        network_with_genesis("third", upstreams=1)
        wait_until(lambda: keeper.running("third"))
        assert not keeper.started("first")
        assert "secret" not in keeper.log.read_text()


def test_followers_survive_an_outage_of_the_database(tmp_path):
    """A follower that has ended is restarted when the database is available again."""
    with installation(with_chain=True) as own, own.connect() as connection:
        connection.execute(
            "INSERT INTO networks_upstream"
            " (network_id, url, headers, position, is_enabled, note, created_at)"
            " SELECT id, 'http://127.0.0.1:9', '{}', 0, true, '', now()"
            " FROM networks_network"
        )
        with keeping(tmp_path, url=own.address) as keeper:
            (pid,) = wait_until(lambda: keeper.running("net"))
            own.database.stop()
            wait_until(lambda: "database is unavailable" in keeper.log.read_text())
            assert keeper.running("net") == [pid]
            os.kill(pid, signal.SIGKILL)
            own.database.start()
            wait_until(lambda: keeper.running_but(pid, "net"))


def follow(log: Path, *arguments: str) -> Forked:
    """Start `manage.py follow` on the test database."""
    environ = {"DATABASE_URL": test_database_url()}
    return commands.start("follow", *arguments, output=log, environ=environ)


@contextmanager
def following(log: Path) -> Iterator[Forked]:
    process = follow(log)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def lock_holder(network_id: int) -> int | None:
    """Return the id of the database process with a network's import lock."""
    with importer_connection() as connection:
        row = connection.execute(
            "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted"
            " AND database = (SELECT oid FROM pg_database"
            " WHERE datname = current_database()) AND objid = %s",
            (network_id,),
        ).fetchone()
    return None if row is None else row[0]


def test_another_command_takes_over_when_the_first_is_killed(tmp_path):
    chain = grow(small_chain(), 3)
    with simulator(chain) as node:
        with importer_connection() as connection:
            network_id = open_network(connection, "net", genesis=genesis_of())
        network = Network.objects.get(pk=network_id)
        add_upstream(network=network, url=node.server.url("http"))
        logs = tmp_path / "first", tmp_path / "second"
        with following(logs[0]) as first:
            wait_until(lambda: head("net")[0] == 3)
            holder = lock_holder(network_id)
            assert holder is not None
            (follower,) = descendants("follow net")
            with following(logs[1]) as second:
                wait_until(lambda: "another import is running" in logs[1].read_text())
                assert lock_holder(network_id) == holder
                (other,) = descendants("follow net") - {follower}
                first.kill()
                with suppress(ProcessLookupError):  # the follower ends with its parent
                    os.kill(follower, signal.SIGKILL)
                node.show(grow(chain, 2))
                wait_until(lambda: head("net")[0] == 5)
                assert lock_holder(network_id) not in (None, holder)
                second.terminate()
                assert second.wait(timeout=PATIENCE_SECONDS) == 0
                assert not is_alive(other)
    assert "Traceback" not in "".join(log.read_text() for log in logs)


def test_a_network_that_does_not_exist_is_named(tmp_path):
    log = tmp_path / "log"
    assert follow(log, "--one", "none").wait(timeout=PATIENCE_SECONDS) == 1
    assert log.read_text() == "CommandError: there is no network 'none'\n"
    assert follow(log, "--one", "a", "b").wait(timeout=PATIENCE_SECONDS) == 1
    message = "CommandError: --one SLUG can't be combined with other slugs\n"
    assert log.read_text() == message
