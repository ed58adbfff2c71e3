"""Upstreams: the services that change them, and the notifications of changes."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import connection, transaction

from networks.models import MAX_UPSTREAMS, Network, Upstream
from networks.services import add_upstream, configure_network, replace_upstreams
from tests.support.rows import make_network
from tests.support.serving import serving
from tests.support.threads import held_up, outcome

pytestmark = pytest.mark.django_db(transaction=True)

A, B, C = (f"http://{name}.example/SECRET" for name in "abc")


def urls(network: Network) -> list[str]:
    return [upstream.url for upstream in network.upstreams.all()]


def refusal(change: Any, **arguments: Any) -> str:
    """Make a change, which has to fail, and return the reason."""
    with pytest.raises(ValidationError) as caught:
        change(**arguments)
    text = " ".join(caught.value.messages)
    assert "SECRET" not in text
    return text


def test_upstreams_are_added_at_the_end() -> None:
    network = make_network()
    add_upstream(network=network, url=A, note="rack 1")
    second = add_upstream(network=network, url=B, headers={"X-Key": "1"})
    assert urls(network) == [A, B]
    assert (second.position, second.headers, second.is_enabled) == (
        *(1, {"X-Key": "1"}),
        True,
    )
    assert network.upstreams.get(url=A).note == "rack 1"


def test_text_of_an_upstream_has_no_secret() -> None:
    upstream = add_upstream(network=make_network(), url=A, headers={"X": "SECRET"})
    assert str(upstream) == "http://a.example/…"
    assert "SECRET" not in repr(upstream)


def test_replacing_keeps_what_it_can() -> None:
    network = make_network()
    kept = add_upstream(network=network, url=A, headers={"X-Key": "1"}, note="rack 1")
    configure_network(network=network, upstreams_enabled={kept.pk: False})
    add_upstream(network=network, url=B)
    replace_upstreams(network=network, urls=[C, A])
    assert urls(network) == [C, A]
    kept.refresh_from_db()
    assert (kept.position, kept.is_enabled) == (1, True)
    assert (kept.headers, kept.note) == ({"X-Key": "1"}, "rack 1")
    replace_upstreams(network=network, urls=[A], headers={"X-Key": "2"})
    kept.refresh_from_db()
    assert kept.headers == {"X-Key": "2"}
    replace_upstreams(network=network, urls=[])
    assert not Upstream.objects.exists()


def test_upstreams_of_other_networks_stay() -> None:
    alpha, beta = make_network("alpha"), make_network("beta")
    add_upstream(network=beta, url=A)
    replace_upstreams(network=alpha, urls=[A])
    replace_upstreams(network=alpha, urls=[])
    assert urls(beta) == [A]


def test_invalid_changes_are_refused_and_change_nothing() -> None:
    network = make_network()
    first = add_upstream(network=network, url=A)
    other = add_upstream(network=make_network("beta"), url=B)
    assert "listed twice" in refusal(add_upstream, network=network, url=A)
    assert "begin with" in refusal(add_upstream, network=network, url="SECRET")
    long = "http://a/" + "SECRET" * 100
    assert "500 characters" in refusal(add_upstream, network=network, url=long)
    assert "begin with" in refusal(
        replace_upstreams, network=network, urls=[B, "http:SECRET"]
    )
    many = [f"http://{number}.example/SECRET" for number in range(MAX_UPSTREAMS + 1)]
    assert "at most 16" in refusal(replace_upstreams, network=network, urls=many)
    assert "listed twice" in refusal(replace_upstreams, network=network, urls=[B, B])
    assert "set automatically" in refusal(
        replace_upstreams, network=network, urls=[B], headers={"Host": "SECRET"}
    )
    assert f"no upstream {other.pk}" in refusal(
        configure_network, network=network, upstreams_enabled={other.pk: False}
    )
    assert urls(network) == [A]
    first.refresh_from_db()
    assert first.is_enabled


def test_as_many_are_enabled_as_have_to_agree() -> None:
    network = make_network()
    # Without upstreams, no agreement is required.
    configure_network(network=network, agree=3)
    assert "3 upstreams have to agree, but only 1 is enabled" in refusal(
        configure_network, network=network, upstream_urls=[A]
    )
    configure_network(network=network, upstream_urls=[A, B, C])
    second = network.upstreams.get(url=B)
    assert "only 2 are enabled" in refusal(
        configure_network, network=network, upstreams_enabled={second.pk: False}
    )
    configure_network(network=network, agree=2, upstreams_enabled={second.pk: False})
    network.refresh_from_db()
    assert network.agree == 2
    for wrong in (0, 17):
        refusal(configure_network, network=network, agree=wrong)
        network.refresh_from_db()


def test_side_blocks_are_kept_for_some_blocks_or_for_ever() -> None:
    network = make_network()
    assert network.keep_side_blocks is None
    configure_network(network=network, keep_side_blocks=64)
    configure_network(network=network, name="First")
    network.refresh_from_db()
    assert network.keep_side_blocks == 64
    configure_network(network=network, keep_side_blocks="all")
    network.refresh_from_db()
    assert network.keep_side_blocks is None


def test_every_process_learns_of_a_change() -> None:
    network = make_network()
    with serving() as running:
        directory = running.service.directory

        def known() -> list[str]:
            return [each.url for each in directory.get(network.pk).upstreams]

        first = add_upstream(network=network, url="ws://a.example", headers={"X": "1"})
        running.until(lambda: known() == ["ws://a.example"])
        view = directory.get(network.pk)
        assert (view.upstreams[0].id, view.upstreams[0].headers) == (
            first.pk,
            {"X": "1"},
        )
        replace_upstreams(network=network, urls=["ws://a.example", B, A])
        running.until(lambda: known() == ["ws://a.example", B, A])
        assert "SECRET" not in repr(directory.get(network.pk))
        second = network.upstreams.get(url=B)
        configure_network(network=network, upstreams_enabled={second.pk: False})
        running.until(lambda: known() == ["ws://a.example", A])
        replace_upstreams(network=network, urls=[])
        running.until(lambda: known() == [])


def test_same_url_is_not_added_by_two_at_once() -> None:
    network = make_network()

    def add() -> None:
        add_upstream(network=network, url=A)

    with transaction.atomic():
        add()
        waiting = held_up(add)
    assert "listed twice" in str(outcome(waiting))
    assert urls(network) == [A]


def test_database_message_about_an_upstream_can_not_contain_its_url() -> None:
    """PostgreSQL would log the values of a unique index in its error message."""
    with connection.cursor() as cursor:
        constraints = connection.introspection.get_constraints(
            cursor, "networks_upstream"
        )
    unique = [each["columns"] for each in constraints.values() if each["unique"]]
    assert unique == [["id"]]
