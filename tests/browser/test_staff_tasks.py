"""The daily tasks of staff, performed in the admin with a real browser."""

from __future__ import annotations

import json
import subprocess
from datetime import timedelta

from django.contrib.auth.models import Group
from django.utils import timezone
from playwright.sync_api import Browser, BrowserContext, Page, expect

from keys.format import is_well_formed
from keys.models import (
    AccessRequest,
    ApiKey,
    Entitlement,
    KeyLimits,
    KeyVersion,
    User,
)
from keys.services import issue_key, request_access
from keys.services.limits import set_plan
from networks.models import Network, NetworkDeletion, NetworkState
from tests.browser.conftest import ask, copied, sign_in
from tests.support import sample
from tests.support.browser import needs_chromium
from tests.support.followed import FollowedChain
from tests.support.live import Live
from tests.support.look import WIDTHS, set_width, width_of
from tests.support.usage import add_usage
from tests.support.waiting import wait_until

pytestmark = needs_chromium


def opened(context: BrowserContext, live: Live, place: str = "") -> Page:
    """Return a page of the admin, opened by a superuser. place: after `/admin/`."""
    boss, _ = User.objects.get_or_create(
        email="boss@example.org", is_staff=True, is_superuser=True
    )
    sign_in(context, live, boss)
    page = context.new_page()
    page.goto(f"/admin/{place}")
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


def test_request_is_declined_and_the_customer_reads_why(
    context: BrowserContext, live: Live, browser: Browser
) -> None:
    owner = User.objects.create_user("refused@example.org")
    key = issue_key(owner=owner, name="Refused").api_key
    network = Network.objects.get(slug="sample")
    request_access(api_key=key, network=network, reason="just because")
    page = opened(context, live)
    page.locator("#requests").get_by_role("link", name="Refused").click()
    page.get_by_role("link", name="Decline").click()
    expect(page.get_by_role("main")).to_contain_text("just because")
    page.get_by_role("textbox", name="Reason").fill("Say what you want to trace.")
    page.get_by_role("button", name="Decline").click()
    expect(page.locator(".messagelist")).to_contain_text("declined")
    theirs = browser.new_context(base_url=live.base_url)
    sign_in(theirs, live, owner)
    other = theirs.new_page()
    other.goto(f"/dashboard/keys/{key.pk}/tracing")
    expect(other.get_by_role("main")).to_contain_text("Say what you want to trace.")
    theirs.close()


def test_key_gets_a_plan_a_limit_and_tracing_on_its_page(
    context: BrowserContext, live: Live
) -> None:
    set_plan(slug="growth", name="Growth", credits_per_second=90_000)
    owner = User.objects.create_user("grows@example.org")
    issued = issue_key(owner=owner, name="Growing")
    live.secrets.append(issued.secret)
    network = Network.objects.get(slug="sample")
    add_usage(issued.api_key, network, timezone.now() - timedelta(minutes=2), calls=7)
    trace = ("debug_traceBlockByNumber", "latest", {"tracer": "callTracer"})
    assert ask(live, issued.secret, *trace).status_code == 403

    page = opened(context, live, f"keys/user/{owner.pk}/change/")
    row = page.get_by_role("region", name="API keys").get_by_role("row")
    expect(row.filter(has_text="Growing")).to_contain_text(issued.version.hint)
    page.get_by_role("link", name="Growing").click()
    page.get_by_role("link", name="Plan and limits").click()
    page.get_by_label("Plan").select_option(label="Growth")
    page.get_by_label("Credits per day").fill("1000")
    page.get_by_role("button", name="Set plan and limits").click()
    expect(page.locator(".messagelist")).to_contain_text("Changed 1 key.")
    limits = KeyLimits.objects.get(api_key=issued.api_key)
    assert (str(limits.plan), limits.credits_per_day) == ("Growth", 1000)

    page.get_by_role("link", name="Grant tracing").click()
    page.get_by_label("Network").select_option(str(network.pk))
    page.get_by_role("checkbox", name="callTracer", exact=True).check()
    page.get_by_role("button", name="Grant tracing on a network").click()
    expect(page.locator(".messagelist")).to_contain_text("Changed 1 key.")
    expect(page.get_by_text("granted tracing to key Growing")).to_be_visible()
    usage = page.get_by_role("link", name="1 hour", exact=True)
    usage.click()
    expect(page.get_by_text("Calls by method").first).to_be_visible()
    wait_until(lambda: ask(live, issued.secret, *trace).status_code == 200)


def test_key_is_issued_on_the_page_of_its_owner(
    context: BrowserContext, live: Live
) -> None:
    owner = User.objects.create_user("phones@example.org")
    page = opened(context, live, "keys/user/")
    page.locator("#searchbar").fill("phones@")
    page.get_by_role("button", name="Search").click()
    page.get_by_role("link", name="phones@example.org").click()
    page.get_by_role("link", name="Issue one").click()
    page.get_by_role("textbox", name="Name:").fill("By phone")
    page.get_by_role("checkbox", name="Show secret").check()
    page.get_by_role("button", name="Save", exact=True).click()
    secret = copied(page, "the secret")
    live.secrets.append(secret)
    call = copied(page, "the call")
    done = subprocess.run(
        ["sh", "-c", call], capture_output=True, text=True, check=True, timeout=30
    )
    assert json.loads(done.stdout)["result"] == hex(sample.head())
    assert ApiKey.objects.get(owner=owner).name == "By phone"


def test_customers_key_is_rolled_and_the_copied_call_works(
    context: BrowserContext, live: Live
) -> None:
    owner = User.objects.create_user("leaks@example.org")
    old = issue_key(owner=owner, name="Leaked")
    page = opened(context, live, f"keys/user/{owner.pk}/change/")
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
    page = opened(context, live, "networks/network/")
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


def test_network_is_hidden_shown_and_opened_to_everyone(
    context: BrowserContext, live: Live, browser: Browser
) -> None:
    chain = FollowedChain("harbour")
    chain.grow(2)
    anonymous = browser.new_context(base_url=live.base_url)
    visitor = anonymous.new_page()

    def rows_of_visitors() -> int:
        visitor.goto("/docs/networks")
        return visitor.get_by_role("cell", name="harbour").count()

    assert rows_of_visitors() == 1
    page = opened(context, live, "networks/network/")
    page.get_by_role("link", name="harbour", exact=True).click()
    page.get_by_role("link", name="Hide").click()
    expect(page.get_by_role("main")).to_contain_text("Customers will no longer see")
    page.get_by_role("button", name="Hide harbour").click()
    expect(page.locator(".messagelist")).to_contain_text("is hidden now")
    assert rows_of_visitors() == 0
    page.get_by_role("link", name="Show").click()
    page.get_by_role("button", name="Show harbour").click()
    expect(page.locator(".messagelist")).to_contain_text("is visible now")
    assert rows_of_visitors() == 1

    visitor.goto("/explore/harbour/")
    expect(visitor.get_by_label("Email address")).to_be_visible()
    page.get_by_label("Public explorer").check()
    page.get_by_role("button", name="Save and continue editing").click()
    expect(page.locator(".messagelist")).to_contain_text("was changed")
    visitor.goto("/explore/harbour/block/2")
    expect(visitor.get_by_role("heading", level=1)).to_contain_text("Block 2")
    anonymous.close()


def test_rows_of_lists_are_cards_with_labels_on_phones(
    context: BrowserContext, live: Live
) -> None:
    issue_key(owner=User.objects.create_user("pocket@example.org"), name="Pocket")
    page = opened(context, live, "keys/apikey/?q=pocket@")
    set_width(page, WIDTHS["phone"])
    row = page.locator("#result_list tbody tr")
    expect(row).to_have_count(1)
    expect(row.locator(".field-owner")).to_have_attribute("data-label", "Owner")
    assert width_of(page) == WIDTHS["phone"]
    page.goto("/admin/keys/apikey/?q=nobody@")
    expect(page.get_by_text("No API keys match the search")).to_be_visible()
