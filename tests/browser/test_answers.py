"""axe checks pages that no link leads to: responses to forms, and error pages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from keys.admin.key_actions import KEY_ACTIONS
from keys.models import AccessRequest, Role, User
from keys.services import (
    Actor,
    accept_invitation,
    create_key,
    invite,
    issue_key,
    request_access,
)
from networks.models import Network
from tests.browser.conftest import PASSWORD, sign_in
from tests.support.browser import emptied, kept_context, needs_chromium
from tests.support.live import Live
from tests.support.look import check_page
from tests.support.signing import add_key
from tests.support.wallet import BY_USER, new_user
from wallets.models import DappKind
from wallets.services.dapps import block_dapp
from wallets.services.pairing import pair_dapp

pytestmark = needs_chromium


@pytest.fixture(scope="module")
def shared_context(browser: Browser, live: Live) -> Iterator[BrowserContext]:
    """Return a browser with one page, which has loaded axe after the first test."""
    with kept_context(browser, base_url=live.base_url) as context:
        yield context


@pytest.fixture
def context(shared_context: BrowserContext) -> Iterator[BrowserContext]:
    """Return a browser whose console may only contain statuses of failed requests."""
    faults: list[str] = []
    with emptied(shared_context, faults):
        yield shared_context
    expected = "Failed to load resource: the"
    assert [one for one in faults if not one.startswith(expected)] == []


def opened(context: BrowserContext, place: str, status: int) -> Page:
    page = context.pages[0]
    answer = page.goto(place)
    assert answer is not None and answer.status == status, place
    return page


LEADING_NOWHERE = [
    "/nowhere",
    "/explore/nowhere/",
    "/account/signup/x",
    "/account/invitations/x",
    "/account/reset/x/y",
]


def test_addresses_that_lead_nowhere(context: BrowserContext) -> None:
    page = context.pages[0]
    for place in LEADING_NOWHERE:
        page.goto(place)
        check_page(page, place)


def test_forms_of_accounts_that_are_rejected(
    context: BrowserContext, live: Live
) -> None:
    page = context.pages[0]
    page.goto("/account/login")
    page.get_by_label("Email address").fill("nobody@example.org")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("main").get_by_role("button", name="Log in").click()
    expect(page.get_by_role("main")).to_contain_text("is wrong")
    check_page(page, "wrong password")
    page.evaluate("document.querySelector('main [name=csrfmiddlewaretoken]').remove()")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("main").get_by_role("button", name="Log in").click()
    expect(page.get_by_label("Password")).to_have_count(0)
    check_page(page, "without a token")
    sign_in(context, live, User.objects.create_user("changes@example.org", PASSWORD))
    page.goto("/account/password")
    page.get_by_label("Old password").fill("wrong")
    page.get_by_label("New password:", exact=False).first.fill("x")
    page.get_by_label("New password confirmation").fill("y")
    page.get_by_role("main").get_by_role("button").last.click()
    expect(page.locator(".errorlist").first).to_be_visible()
    check_page(page, "new passwords that differ")


def test_secrets_and_rejected_forms_of_the_dashboard(
    context: BrowserContext, live: Live
) -> None:
    user = new_user()
    key = create_key(owner=user, name="Indexer")
    sign_in(context, live, user)
    page = opened(context, f"/dashboard/keys/{key.pk}", 200)
    page.get_by_role("button", name="Reveal the key").click()
    live.secrets.append(page.locator("#secret").inner_text())
    check_page(page, "revealed")
    page.goto(f"/dashboard/keys/{key.pk}/roll")
    page.get_by_role("button", name="Roll the key").click()
    live.secrets.append(page.locator("#secret").inner_text())
    check_page(page, "rolled")
    page.goto("/dashboard/keys/new")
    page.get_by_label("Name").fill("a\u202eb")
    page.get_by_role("button", name="Create").click()
    expect(page.locator(".errorlist").first).to_be_visible()
    check_page(page, "rejected name")
    page.goto(f"/dashboard/keys/{key.pk}/allowlists")
    page.get_by_label("Origins").fill("https://dapp.example/app")
    page.get_by_role("button", name="Save all lists").click()
    expect(page.get_by_role("alert")).to_be_visible()
    check_page(page, "rejected lists")
    page.goto(f"/dashboard/keys/{key.pk}/tracing/sample")
    for box in page.get_by_role("checkbox").all():
        box.uncheck()
    page.get_by_label("What do you need tracing for?").fill("x")
    page.get_by_role("button", name="Send the request").click()
    expect(page.locator(".errorlist").first).to_be_visible()
    check_page(page, "rejected request")


def test_page_that_needs_another_role(context: BrowserContext, live: Live) -> None:
    owner, viewer = new_user(), new_user()
    key = issue_key(owner=owner, name="Indexer").api_key
    issued = invite(account=owner, email=viewer.email, role=Role.VIEWER)
    accept_invitation(token=issued.token, user=viewer, actor=Actor(viewer))
    sign_in(context, live, viewer)
    page = opened(context, f"/dashboard/keys/{key.pk}/roll", 403)
    expect(page.get_by_role("main")).to_contain_text("requires the role developer")
    check_page(page, "forbidden")


def test_rejected_forms_of_the_wallet(context: BrowserContext, live: Live) -> None:
    user = new_user()
    account = add_key(user)
    sign_in(context, live, user)
    page = opened(context, "/wallet/accounts/create", 200)
    page.get_by_label("Label").fill("First")
    page.get_by_label("Passphrase", exact=False).first.fill("a passphrase of words")
    page.get_by_label("Repeat the passphrase").fill("another passphrase")
    page.get_by_role("button", name="Create the account").click()
    expect(page.locator(".errorlist").first).to_be_visible()
    check_page(page, "passphrases that differ")
    page.goto("/wallet/accounts")
    page.get_by_label("Address").fill("0x12")
    page.get_by_role("button", name="Add").click()
    expect(page.locator(".errorlist").first).to_be_visible()
    check_page(page, "rejected address")
    page.goto(f"/wallet/accounts/{account.pk}/key")
    page.get_by_label("Passphrase").fill("wrong")
    page.get_by_role("button", name="Download the keystore").click()
    expect(page.locator(".errorlist, [role=alert]").first).to_be_visible()
    check_page(page, "wrong passphrase")


def test_window_of_a_page_that_the_user_has_blocked(
    context: BrowserContext, live: Live
) -> None:
    user = new_user()
    origin = "https://swap.example"
    dapp = pair_dapp(user=user, kind=DappKind.WEB, ident=origin, cause=BY_USER)
    block_dapp(dapp=dapp, cause=BY_USER)
    sign_in(context, live, user)
    challenge = "a" * 43
    window = f"/wallet/connect?origin={origin}&state=s&code_challenge={challenge}"
    page = opened(context, window, 403)
    expect(page.get_by_role("heading", name="Blocked")).to_be_visible()
    expect(page.get_by_role("button", name="Connect")).to_have_count(0)
    check_page(page, "blocked")


def test_pages_on_which_staff_decide(context: BrowserContext, live: Live) -> None:
    issued = issue_key(owner=new_user(), name="Indexer")
    network = Network.objects.get(slug="sample")
    asked = request_access(api_key=issued.api_key, network=network, reason="to debug")
    boss = User.objects.create_superuser("decides@example.org")
    sign_in(context, live, boss)
    key = f"/admin/keys/apikey/{issued.api_key.pk}"
    places = [
        *(f"{key}/do/{name}/" for name, action in KEY_ACTIONS.items() if action.form),
        f"/admin/keys/accessrequest/{asked.pk}/do/approve/",
        f"/admin/keys/accessrequest/{asked.pk}/do/decline/",
        f"/admin/networks/network/{network.pk}/do/hide/",
        f"/admin/networks/network/{network.pk}/do/retire/",
        f"/admin/networks/network/{network.pk}/do/delete_network/",
    ]
    for place in places:
        check_page(opened(context, place, 200), place, "#content")
    page = opened(context, f"{key}/do/roll/", 200)
    page.get_by_role("button", name="Roll and show").click()
    live.secrets.append(page.locator("#secret").inner_text())
    check_page(page, "issued secret", "#content")
    page.goto("/admin/networks/network/add/")
    page.get_by_label("Slug").fill("v3")
    page.get_by_label("Name", exact=False).first.fill("Reserved")
    page.get_by_role("button", name="Add network").click()
    expect(page.locator(".errorlist").first).to_be_visible()
    check_page(page, "rejected network", "#content")
    assert AccessRequest.objects.get(pk=asked.pk).status == "pending"
