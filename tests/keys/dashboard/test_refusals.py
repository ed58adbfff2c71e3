"""Rejected calls are counted by reason, and the owner of the key sees the remedies."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from django.utils.html import conditional_escape

from guide.error_entries import error_entries
from keys.dashboard.refusals import PAGES, remedies_by_reason
from keys.metering import refusals
from keys.metering.refusals import Refusals
from keys.models import Refusal, User
from keys.services import disable_key, enable_key, issue_key, set_allowlist
from tests.keys.dashboard.conftest import Customer, text
from tests.support.live import live_service, request
from tests.support.rows import add_block, make_network, set_head
from tests.support.waiting import wait_until


def test_each_reason_has_the_remedy_of_the_page_of_errors() -> None:
    shown = {(entry.reason, entry.remedy) for entry in error_entries() if entry.reason}
    remedies = remedies_by_reason()
    assert all(remedies.values())
    assert remedies.items() <= shown
    assert remedies.keys() == {reason for reason, _ in shown}
    assert "Request less at a time" in remedies["response_too_large"]
    assert PAGES.keys() <= remedies.keys()


def test_refusals_of_all_kinds_reach_the_page(transactional_db: None) -> None:
    alpha, beta = make_network("alpha"), make_network("beta")
    add_block(alpha, "head", 1)
    set_head(alpha, "head", 1)
    user = User.objects.create_user("customer@example.org")
    key = issue_key(owner=user, networks=[alpha])
    trace = request("debug_traceBlockByNumber", "latest", {})
    with live_service() as live:
        live.secrets.append(key.secret)
        with (
            live.api("alpha", key.secret) as api,
            live.api("beta", key.secret) as other,
        ):
            assert other.send(request("eth_chainId")).status_code == 403
            assert api.send([trace, trace, request("eth_chainId")]).status_code == 200
            disable_key(api_key=key.api_key)
            wait_until(lambda: api.send(request("eth_chainId")).status_code == 403)
            enable_key(api_key=key.api_key)
            wait_until(lambda: api.send(request("eth_chainId")).status_code == 200)
            set_allowlist(api_key=key.api_key, kind="ip", values=["192.0.2.1"])
            wait_until(lambda: api.send(request("eth_chainId")).status_code == 403)
    # A process that stops writes its counts.
    found = {
        (one.reason, one.network and one.network.slug): (one.calls, one.method)
        for one in Refusal.objects.select_related("network")
    }
    # A process that has not received the change yet still reports the old reason.
    assert found.pop(("key_disabled", None))[0] >= 1
    assert found == {
        ("network_not_enabled", beta.slug): (1, ""),
        ("method_not_entitled", "alpha"): (2, "debug_traceBlockByNumber"),
        ("ip_not_allowed", "alpha"): (1, ""),
    }
    client = Client()
    client.force_login(user)
    page = text(client.get(f"/dashboard/keys/{key.api_key.pk}"))
    for reason in ("key_disabled", *(reason for reason, _ in found)):
        assert f'href="/docs/errors#{reason}"' in page
        assert conditional_escape(remedies_by_reason()[reason]) in page
    for name, link in (("tracing", "Request access"), ("allowlists", "Edit the allow")):
        assert f'<a href="/dashboard/keys/{key.api_key.pk}/{name}">{link}' in page


def test_connections_beyond_the_limit_reach_the_owner(transactional_db: None) -> None:
    alpha = make_network("alpha")
    add_block(alpha, "head", 1)
    set_head(alpha, "head", 1)
    with live_service(env={"CONNECTIONS_PER_KEY": "1"}) as live:
        secret = live.new_key()
        with live.api("alpha", secret) as one, live.api("alpha", secret) as other:
            assert one.send(request("eth_chainId")).status_code == 200
            assert other.send(request("eth_chainId")).status_code == 429
    refusal = Refusal.objects.get()
    assert (refusal.reason, refusal.network) == ("too_many_connections", alpha)


def written(*counted: Refusals) -> None:
    """Write counts to the database, as a process does."""
    from psycopg import AsyncConnection

    from nodeapi.node import database_conninfo

    async def write() -> None:
        async with await AsyncConnection.connect(
            database_conninfo(), autocommit=True
        ) as connection:
            for one in counted:
                await one.write(connection)

    asyncio.run(write())


def test_row_counts_its_last_day_in_all_processes(transactional_db: None) -> None:
    alpha = make_network("alpha")
    user = User.objects.create_user("customer@example.org")
    key = issue_key(owner=user).api_key
    midnight = 1_800_057_600.0  # of UTC
    now = midnight - 10
    one, two = Refusals(lambda: now), Refusals(lambda: now)
    place = key.pk, alpha.pk, "rate_limited"
    for counter in (one, two, two):
        counter.note(place, "eth_chainId")
    written(one, two)
    assert Refusal.objects.get().calls == 3
    one.note(place, "eth_chainId")
    now = midnight + 10
    one.note(place, "net_version")
    one.note((key.pk, 0, "key_expired"), "")
    one.note((key.pk + 1, 0, "key_expired"), "")  # of a deleted key
    written(one)
    limited, expired = Refusal.objects.order_by("-reason")
    assert (limited.calls, limited.method) == (1, "net_version")
    assert limited.last_at.timestamp() == now
    assert (expired.reason, expired.network) == ("key_expired", None)
    assert len(one) == 0


def test_what_waits_is_bounded(monkeypatch) -> None:
    monkeypatch.setattr(refusals, "MAX_WAITING", 2)
    counter = Refusals(lambda: 0.0)
    for number in (1, 2, 3, 1):
        counter.note((number, 0, "key_expired"), "")
    assert len(counter) == 2


@pytest.mark.django_db
def test_old_refusals_are_not_shown(customer: Customer) -> None:
    long_ago = timezone.now() - timedelta(days=8)
    Refusal.objects.create(
        api_key=customer.key, reason="daily_quota", last_at=long_ago, calls=7
    )
    assert "Recent rejections" not in customer.page()
    Refusal.objects.update(last_at=timezone.now())
    assert "Wait until 00:00 UTC" in customer.page()
