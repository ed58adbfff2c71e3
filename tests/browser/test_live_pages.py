"""Pages of networks in a browser: they update themselves, and can be paused."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from playwright.sync_api import Browser, BrowserContext, Page, expect

from keys.models import User
from networks.models import Network
from networks.services import add_upstream
from nodeapi.models import FollowerStatus, QuarantinedBlock
from tests.browser.conftest import sign_in
from tests.support.browser import log_in, needs_chromium
from tests.support.followed import (
    FollowedChain,
    add_quarantined,
    add_statuses,
    add_timings,
    add_upstreams,
)
from tests.support.live import Live, live_service
from tests.support.look import check_page
from tests.support.rows import make_network
from tests.support.upstream_node import UpstreamNode, running_node

pytestmark = needs_chromium

KINDS = ("empty", "full", "failing")


@pytest.fixture(scope="module")
def chain(module_db: None) -> FollowedChain:
    """Return a followed chain, and create networks without upstreams and blocks."""
    make_network("empty")
    for slug in ("failing", "full"):
        chain = FollowedChain(slug)
        chain.grow(26)
        chain.reorganise()
        if slug == "full":
            chain.grow(2, transactions=200)
            chain.finalize(safe=22, finalized=20)
        _observe(chain.network, slug)
    return chain


def _observe(network: Network, kind: str) -> None:
    """Store the rows that followers write about a network of some kind."""
    upstreams, now = add_upstreams(network), timezone.now()
    add_statuses(network, upstreams, now, behind=7 if kind == "failing" else 0)
    add_timings(network, now)
    if kind == "failing":
        add_quarantined(network, upstreams[0])
        FollowerStatus.objects.filter(network=network).update(
            alarm="The head 0x5a5a of the upstreams does not descend from the finalized "
            "block 12. Nothing is imported any more."
        )


@pytest.fixture(scope="module")
def pool(chain: FollowedChain) -> Iterator[UpstreamNode]:
    """Run the only upstream of a further network."""
    pooled = FollowedChain("pooled")
    pooled.grow(2)
    with running_node() as node:
        add_upstream(network=pooled.network, url=node.url)
        yield node


@pytest.fixture(scope="module")
def live(chain: FollowedChain) -> Iterator[Live]:
    with live_service() as running:
        yield running


@pytest.fixture
def page(own_context: BrowserContext, live: Live) -> Page:
    user, _ = User.objects.get_or_create(
        email="boss@example.org", is_staff=True, is_superuser=True
    )
    sign_in(own_context, live, user)
    page = own_context.pages[0]
    page.clock.install()
    return page


def pass_pause(page: Page) -> None:
    """Let more time pass for a page than its pause between two requests."""
    page.clock.fast_forward(10_000)


def status_path(network: Network) -> str:
    return f"/admin/networks/network/{network.pk}/status/"


def test_pages_are_usable_by_everybody(page: Page) -> None:
    for kind in KINDS:
        network = Network.objects.get(slug=kind)
        if kind == "full":  # its follower is running, also on a slow machine
            later = timezone.now() + timedelta(hours=1)
            FollowerStatus.objects.filter(network=network).update(updated_at=later)
        page.goto(f"/explore/{kind}/")
        check_page(page, f"explorer-{kind}", "main")
        page.goto(status_path(network))
        check_page(page, f"status-{kind}", "#content")  # its frame is Django's


def test_a_pending_transaction_has_a_page(page: Page, pool: UpstreamNode) -> None:
    name = f"0x{'12' * 32}"
    pool.answers["eth_getTransactionByHash"] = {
        "hash": name,
        "type": "0x2",
        "from": f"0x{'ab' * 20}",
        "to": f"0x{'cd' * 20}",
        "nonce": "0x7",
        "value": hex(10**18),
        "gas": "0xea60",
        "maxFeePerGas": hex(3 * 10**9),
        "input": f"0xa9059cbb{'00' * 64}",
    }
    pool.answers["eth_getBlockByNumber"] = {"difficulty": "0x0", "transactions": []}
    page.goto("/explore/pooled/")
    expect(page.locator("#facts")).to_contain_text("0 transactions")
    page.goto(f"/explore/pooled/tx/{name}")
    expect(page.locator("h1 .badge")).to_have_text("pending")
    check_page(page, "pending", "main")


def test_new_blocks_appear_and_the_focus_stays(
    page: Page, chain: FollowedChain
) -> None:
    page.goto("/explore/full/")
    head = chain.network.head_number or 0
    old = page.get_by_role("link", name=str(head), exact=True)
    old.focus()
    badge = page.locator("#lines tr").first.locator(".badge")
    expect(badge).to_have_text("latest")
    chain.grow()
    pass_pause(page)
    expect(page.get_by_role("link", name=str(head + 1), exact=True)).to_be_visible()
    expect(page.locator("#lines tr")).to_have_count(25)
    expect(page.locator("#facts")).to_contain_text(str(head + 1))
    expect(page.locator("#lines tr").nth(1).locator(".badge")).to_have_text("canonical")
    expect(old).to_be_focused()


def test_a_reorganisation_appears(page: Page, chain: FollowedChain) -> None:
    page.goto("/explore/full/")
    tables = page.locator("table.branches")
    before = tables.count()
    chain.grow()
    old = chain.reorganise(1, 2)
    pass_pause(page)
    expect(tables).to_have_count(before + 1)
    replaced = f"#block-0x{old[0].header.hash.hex()}"
    expect(page.locator(replaced)).to_have_count(0)
    expect(tables.first).to_contain_text("1 block after block")


def test_updates_pause_and_resume(page: Page, chain: FollowedChain) -> None:
    page.goto("/explore/full/")
    number = chain.network.head_number or 0
    page.get_by_role("button", name="Pause updates").click()
    page.wait_for_load_state("networkidle")  # a request that was in flight
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    chain.grow()
    page.clock.run_for(60_000)  # longer than the script waits between two requests
    assert not [one for one in requests if "/explore/" in one]
    expect(page.locator("#lines tr").first).to_contain_text(str(number))
    page.get_by_role("button", name="Resume updates").click()
    expect(page.locator("#lines tr").first).to_contain_text(str(number + 1))


def test_ages_grow(page: Page) -> None:
    page.goto("/explore/full/")
    age = page.locator("#lines time").first
    age.evaluate("one => one.dataset.age = Math.floor(Date.now() / 1000) - 57")
    expect(age).to_have_text(re.compile(r"\d s"))
    page.clock.fast_forward(3000)
    expect(age).to_have_text("1 min")
    age.evaluate("one => one.dataset.age = Date.now() / 1000 - 90_000_000")
    expect(age).to_have_text("1,041 d")


def test_a_page_says_that_it_is_not_up_to_date(
    browser: Browser, live: Live, chain: FollowedChain
) -> None:
    client = Client()
    client.force_login(User.objects.create_user("out@example.org", is_staff=True))
    context = browser.new_context(base_url=live.base_url)
    log_in(context, live.base_url, client.cookies["sessionid"].value)
    page = context.new_page()
    page.clock.install()
    page.goto("/explore/full/")
    expect(page.locator(".stale")).to_be_hidden()
    context.clear_cookies()
    pass_pause(page)
    expect(page.locator(".stale")).to_be_visible()
    context.close()


def test_the_page_is_whole_without_scripts(
    browser: Browser, live: Live, chain: FollowedChain
) -> None:
    client = Client()
    client.force_login(User.objects.create_user("plain@example.org", is_staff=True))
    context = browser.new_context(base_url=live.base_url, java_script_enabled=False)
    log_in(context, live.base_url, client.cookies["sessionid"].value)
    page = context.new_page()
    page.goto("/explore/full/")
    expect(page.locator("#lines tr")).to_have_count(25)
    assert re.fullmatch(r"\d+ (s|min)", page.locator("#lines time").first.inner_text())
    page.get_by_role("link", name="Older →").click()
    expect(page.locator("h2#blocks")).to_have_text("Blocks")
    context.close()


def test_status_is_kept_up_to_date_and_a_block_is_released(page: Page) -> None:
    network = Network.objects.get(slug="failing")
    page.goto(status_path(network))
    upstream = network.upstreams.all()[1]
    added = QuarantinedBlock.objects.create(
        network=network, hash=b"\x77" * 32, number=77, upstream=upstream, reason="late"
    )
    pass_pause(page)
    button = page.get_by_role("button", name="Release block 77")
    button.click()  # as soon as it appears
    expect(page.locator(".messagelist")).to_contain_text(
        "Released the quarantined block"
    )
    expect(button).to_have_count(0)
    assert not QuarantinedBlock.objects.filter(pk=added.pk).exists()
