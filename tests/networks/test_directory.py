from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from django.db import transaction

from networks.directory import Directory
from networks.services import configure_network
from postgres.errors import Unavailable
from postgres.statement import Statement
from tests.support.rows import hash_of, make_network, set_head
from tests.support.serving import Serving, changes_unknown, serving

pytestmark = pytest.mark.django_db(transaction=True)


def head_of(running: Serving, network_id: int) -> int | None:
    directory = running.service.directory
    number: int | None = running.ask(directory.current, network_id).head_number
    return number


def is_of_networks(statement: Statement, *_: object) -> bool:
    """Return whether a statement reads the networks, and not the outbox."""
    return b"FROM networks_network" in statement.sql


def test_networks_are_found_by_slug_host_and_id() -> None:
    alpha, beta = make_network("alpha"), make_network("beta")
    configure_network(network=beta, host_names=["beta.example", "b.example"])
    with serving() as running:
        directory = running.service.directory
        assert directory.by_slug("beta") is directory.get(beta.pk)
        assert directory.by_slug("gamma") is None
        assert directory.get(0) is None
        assert [view.slug for view in directory.all()] == ["alpha", "beta"]
        by_host = {
            host: view.slug if (view := directory.by_host(host)) else None
            for host in (
                "beta.example",
                "beta.example:8000",
                "B.Example:443",
                "b.example.",
                "b.example.:443",
                "other.example",
                "127.0.0.1:8000",
                "[::1]:8000",
                "[::1]",
                "",
                ":",
            )
        }
    assert by_host == {
        "beta.example": "beta",
        "beta.example:8000": "beta",
        "B.Example:443": "beta",
        "b.example.": "beta",
        "b.example.:443": "beta",
        "other.example": "alpha",
        "127.0.0.1:8000": "alpha",
        "[::1]:8000": "alpha",
        "[::1]": "alpha",
        "": "alpha",
        ":": "alpha",
    }
    assert alpha.pk < beta.pk


def test_view_has_everything_a_request_needs() -> None:
    network = make_network("alpha")
    configure_network(
        network=network,
        name="The First",
        tracers=["callTracer", "4byteTracer"],
        emit_total_difficulty=False,
        host_names=["a.example"],
    )
    set_head(network, "five", 5, safe_hash=hash_of("three"))
    with serving() as running:
        view = running.service.directory.by_slug("alpha")
    assert view is not None
    assert (view.id, view.slug, view.name) == (network.pk, "alpha", "The First")
    assert view.chain_id == network.chain_id
    assert view.tracers == {"callTracer", "4byteTracer"}
    assert view.emit_total_difficulty is False
    assert (view.head_number, view.head_hash) == (5, hash_of("five"))
    assert view.safe_hash == hash_of("three")
    assert view.finalized_hash == hash_of("five"), "unset: the head"
    assert view.host_names == {"a.example"}


def test_network_without_tracers_and_blocks_is_seen_as_such() -> None:
    configure_network(network=make_network("bare"), tracers=[])
    with serving() as running:
        view = running.service.directory.by_slug("bare")
    assert view is not None
    assert view.tracers == frozenset()
    assert view.host_names == frozenset()
    assert view.head_number is view.head_hash is view.safe_hash is None


@pytest.mark.parametrize(
    ("setting", "expected"), [("beta", "beta"), ("", "alpha"), ("gone", "alpha")]
)
def test_default_network_is_the_set_one_else_the_oldest(
    settings: pytest.FixtureRequest, setting: str, expected: str
) -> None:
    settings.DEFAULT_NETWORK = setting  # type: ignore[attr-defined]
    make_network("alpha")
    make_network("beta")
    with serving() as running:
        view = running.service.directory.by_host("any.example")
    assert view is not None
    assert view.slug == expected


def test_without_any_network_no_host_is_one() -> None:
    with serving() as running:
        assert running.service.directory.by_host("any.example") is None


def test_before_anything_was_read_nothing_is_known() -> None:
    with serving() as running:
        service = running.service
        directory = Directory(service.connections, service.subscriber)
        for method, name in (
            (directory.by_slug, "alpha"),
            (directory.by_host, "any.example"),
            (directory.get, 1),
        ):
            with pytest.raises(Unavailable):
                method(name)


def test_announced_head_is_known_without_a_question() -> None:
    network = make_network()
    set_head(network, "one", 1)
    with serving() as running:
        directory = running.service.directory
        assert running.at_once(directory.current, network.pk).head_number == 1
        set_head(network, "two", 2)
        running.until(lambda: directory.get(network.pk).head_number == 2)
        assert running.at_once(directory.current, network.pk).head_number == 2


def test_head_is_announced_at_the_commit_and_not_before() -> None:
    network = make_network()
    set_head(network, "one", 1)
    with serving() as running:
        with transaction.atomic():
            set_head(network, "two", 2)
            assert running.ask(running.service.directory.reread, network.pk)
            assert head_of(running, network.pk) == 1
        directory = running.service.directory
        running.until(lambda: directory.get(network.pk).head_number == 2)


def test_while_changes_may_be_unknown_the_head_is_read_for_each_request() -> None:
    network = make_network()
    set_head(network, "one", 1)
    with serving() as running:
        directory = running.service.directory
        with changes_unknown(running):
            assert not directory.is_fresh
            set_head(network, "two", 2)
            assert head_of(running, network.pk) == 2
            set_head(network, "three", 3)
            assert head_of(running, network.pk) == 3
        running.until(lambda: directory.is_fresh)
        set_head(network, "four", 4)
        running.until(lambda: directory.get(network.pk).head_number == 4)


def test_readings_of_one_moment_are_one_query() -> None:
    network = make_network()
    set_head(network, "one", 1)
    with serving() as running:
        directory = running.service.directory
        fetched = 0
        fetch = running.service.connections.fetch

        async def count(*arguments: Any) -> object:
            nonlocal fetched
            fetched += is_of_networks(*arguments)
            return await fetch(*arguments)

        running.service.connections.fetch = count  # type: ignore[assignment, method-assign]
        answers = running.ask_all(*[(directory.reread, network.pk)] * 20)
        assert [view.head_number for view in answers] == [1] * 20
        assert fetched == 1


def test_one_reading_ends_before_the_next_begins() -> None:
    """Otherwise, a slow older result could replace a newer one."""
    network = make_network()
    with serving() as running:
        directory = running.service.directory
        fetch = running.service.connections.fetch
        spans: list[tuple[float, float]] = []
        asked = asyncio.Event()

        async def slow(*arguments: Any) -> object:
            if not is_of_networks(*arguments):
                return await fetch(*arguments)
            start = time.monotonic()
            asked.set()
            rows = await fetch(*arguments)
            spans.append((start, time.monotonic()))
            return rows

        running.service.connections.fetch = slow  # type: ignore[assignment, method-assign]

        async def ask_now_and_again() -> None:
            first = asyncio.ensure_future(directory.reread(network.pk))
            await asked.wait()
            await asyncio.gather(first, directory.reread(network.pk))

        running.ask(ask_now_and_again)
    assert len(spans) == 2, "the second caller may not be given the first one's answer"
    assert spans[0][1] <= spans[1][0]


def test_announcement_whose_reading_failed_is_not_forgotten() -> None:
    network = make_network()
    set_head(network, "one", 1)
    with serving() as running:
        directory, connections = running.service.directory, running.service.connections
        fetch = connections.fetch
        failures = 0

        async def fail_twice(*arguments: Any) -> object:
            nonlocal failures
            if failures < 2 and is_of_networks(*arguments):
                failures += 1
                raise Unavailable("not now")
            return await fetch(*arguments)

        connections.fetch = fail_twice  # type: ignore[assignment, method-assign]
        set_head(network, "two", 2)
        running.until(lambda: failures > 0)
        assert not directory.is_fresh
        running.until(lambda: directory.is_fresh)
        assert directory.get(network.pk).head_number == 2


def test_failing_subscriber_does_not_prevent_the_update(
    caplog: pytest.LogCaptureFixture,
) -> None:
    network = make_network()
    told = []

    def fail() -> None:
        raise RuntimeError("lost")

    with serving() as running:
        directory = running.service.directory
        directory.subscribe(fail)
        directory.subscribe(lambda: told.append(directory.get(network.pk).head_number))
        set_head(network, "one", 1)
        running.until(lambda: 1 in told)
        assert directory.is_fresh
    assert "a subscriber of the networks failed" in caplog.text


def test_changed_and_new_networks_become_known() -> None:
    network = make_network("alpha")
    with serving() as running:
        directory = running.service.directory
        configure_network(network=network, host_names=["a.example"])
        running.until(lambda: directory.get(network.pk).host_names == {"a.example"})
        make_network("beta")
        running.until(lambda: directory.by_slug("beta") is not None)
        configure_network(network=network, host_names=[])
        running.until(lambda: not directory.get(network.pk).host_names)


def test_removed_network_is_unavailable() -> None:
    network = make_network("alpha")
    with serving() as running:
        directory = running.service.directory
        with pytest.raises(Unavailable):
            running.ask(directory.reread, network.pk + 1)
        assert running.ask(directory.reread, network.pk).slug == "alpha"
