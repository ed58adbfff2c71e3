"""The daily tasks of staff, performed in the admin as a person would."""

from __future__ import annotations

import json

from django.contrib.auth.models import Group
from playwright.sync_api import BrowserContext, Page, expect

from keys.format import is_well_formed
from keys.models import AccessRequest, Entitlement, KeyVersion, User
from keys.services import issue_key, request_access
from networks.models import Network, NetworkDeletion, NetworkState
from tests.browser.conftest import ask, copied, sign_in
from tests.support import sample
from tests.support.browser import needs_chromium
from tests.support.live import Live
from tests.support.waiting import wait_until

pytestmark = needs_chromium


def opened(context: BrowserContext, live: Live) -> Page:
    """Return the admin's first page, opened by a superuser."""
    boss, _ = User.objects.get_or_create(
        email="boss@example.org", is_staff=True, is_superuser=True
    )
    sign_in(context, live, boss)
    page = context.new_page()
    page.goto("/admin/")
    return page


def test_request_is_approved_from_the_first_page(
    context: BrowserContext, live: Live
) -> None:
    owner = User.objects.create_user("asks@example.org")
    key = issue_key(owner=owner, name="Indexer").api_key
    network = Network.objects.get(slug="sample")
    asked = request_access(api_key=key, network=network, reason="to debug")
    page = opened(context, live)
    page.locator("#requests").get_by_role("link", name="Indexer").click()
    expect(page.get_by_text("to debug")).to_be_visible()
    page.get_by_role("link", name="Approve").click()
    page.get_by_label("Message").fill("Have fun")
    page.get_by_role("button", name="Approve").click()
    expect(page.locator(".messagelist")).to_contain_text("approved")
    expect(page.get_by_role("link", name="Decline")).to_have_count(0)
    assert AccessRequest.objects.get(pk=asked.pk).answer == "Have fun"
    assert Entitlement.objects.filter(api_key=key, network=network).exists()


def test_customers_key_is_rolled_and_the_copied_call_works(
    context: BrowserContext, live: Live
) -> None:
    owner = User.objects.create_user("leaks@example.org")
    old = issue_key(owner=owner, name="Leaked")
    page = opened(context, live)
    page.goto(f"/admin/keys/user/{owner.pk}/change/")
    page.get_by_role("link", name="Leaked").click()
    page.get_by_role("link", name="Roll", exact=True).click()
    page.get_by_label("Overlap").select_option("0")
    page.get_by_role("button", name="Roll and show").click()
    secret = copied(page, "the secret")
    live.secrets.append(secret)
    assert is_well_formed(secret)
    call = copied(page, "the call")
    assert f"/v3/{secret}" in call
    assert "result" in ask(live, secret, "eth_blockNumber").json()
    wait_until(lambda: ask(live, old.secret, "eth_blockNumber").status_code == 401)
    page.get_by_role("link", name="Open the API key").click()
    expect(page.get_by_text("boss@example.org rolled key Leaked")).to_be_visible()
    page.get_by_role("link", name="Revoke", exact=True).click()
    page.get_by_label("Reason").fill("leaked twice")
    page.get_by_role("button", name="Revoke").click()
    expect(page.get_by_role("link", name="Revoke", exact=True)).to_have_count(0)
    assert not KeyVersion.objects.live().filter(api_key=old.api_key).exists()


def test_network_is_added_retired_and_deleted(
    context: BrowserContext, live: Live
) -> None:
    page = opened(context, live)
    page.goto("/admin/networks/network/")
    page.get_by_role("link", name="Add network").click()
    page.get_by_label("Slug").fill("spare")
    page.get_by_label("Name:", exact=True).fill("Spare")
    genesis = json.dumps(sample.genesis()).encode()
    file = {"name": "g.json", "mimeType": "application/json", "buffer": genesis}

    def submit() -> None:
        page.get_by_label("genesis.json").set_input_files(files=[file])  # type: ignore[list-item]
        page.get_by_role("button", name="Add network").click()

    submit()
    expect(page.get_by_text("The network sample has the same chain id")).to_be_visible()
    page.get_by_label("Add a second network").check()
    submit()
    expect(page.locator(".messagelist")).to_contain_text("Spare was added")
    page.get_by_role("link", name="Retire").click()
    page.get_by_role("button", name="Retire spare").click()
    expect(page.locator(".messagelist")).to_contain_text("Spare is retired now")
    page.get_by_role("link", name="Delete").click()
    expect(page.get_by_text("It cannot be undone")).to_be_visible()
    page.get_by_label("Type spare").fill("spare")
    page.get_by_role("button", name="Delete spare").click()
    expect(page.get_by_text("waiting for manage.py follow")).to_be_visible()
    network = Network.objects.get(slug="spare")
    assert network.state == NetworkState.RETIRED
    assert NetworkDeletion.objects.get().network == network


def test_support_sees_and_does_what_is_allowed(
    context: BrowserContext, live: Live
) -> None:
    owner = User.objects.create_user("abuses@example.org")
    key = issue_key(owner=owner, name="Abuse").api_key
    support = User.objects.create_user("support@example.org", is_staff=True)
    support.groups.add(Group.objects.get(name="support"))
    sign_in(context, live, support)
    page = context.new_page()
    page.goto("/admin/")
    expect(page.locator("#requests")).to_be_visible()
    expect(page.locator("#troubles")).to_have_count(0)
    page.goto(f"/admin/keys/apikey/{key.pk}/change/")
    expect(page.get_by_role("link", name="Roll", exact=True)).to_have_count(0)
    page.get_by_role("link", name="Disable").click()
    page.get_by_label("Reason").fill("abuse")
    page.get_by_role("button", name="Disable").click()
    page.get_by_role("button", name="Enable").click()
    expect(page.get_by_role("link", name="Disable")).to_be_visible()
    key.refresh_from_db()
    assert key.is_enabled
