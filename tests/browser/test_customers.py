"""Customers in a real browser, from the sign-up to their first answered call."""

from __future__ import annotations

import json
import subprocess

import pytest
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.contrib.sessions.models import Session
from playwright.sync_api import Browser, BrowserContext, Error, Page, expect

from config.demo import find_sample
from keys.models import User
from keys.services import create_key, issue_key
from tests.browser.conftest import (
    PASSWORD,
    ask,
    copied,
    mailed_path,
    sign_in,
)
from tests.support import sample
from tests.support.browser import needs_chromium
from tests.support.live import Live
from tests.support.look import WIDTHS, check_page, set_width, width_of
from tests.support.waiting import wait_until
from tests.support.wallet import new_user

pytestmark = needs_chromium


def secret_on(page: Page, live: Live) -> str:
    secret = copied(page, "the key")
    live.secrets.append(secret)
    assert page.locator("#secret").inner_text() == secret
    return secret


def test_five_clicks_from_sign_up_to_the_first_call(
    context: BrowserContext, live: Live
) -> None:
    page = context.new_page()
    page.goto("/")
    page.get_by_role("main").get_by_role("link", name="Sign up").click()
    page.get_by_label("Email address").fill("quick@example.org")
    page.get_by_role("button", name="Send the email").click()  # 1
    expect(page.get_by_role("heading", level=1)).to_have_text("Check your email")
    page.goto(mailed_path(live, "/account/signup"))  # 2: the link in the mail
    page.get_by_label("New password", exact=False).first.fill(PASSWORD)
    page.get_by_label("New password confirmation").fill(PASSWORD)
    page.get_by_role("button", name="Create the account").click()  # 3
    page.get_by_role("button", name="Create and reveal the key").click()  # 4
    page.get_by_role("button", name="Run the call").click()  # 5
    expect(page.locator("#run-response")).to_contain_text(
        f'"result":"{sample.head():#x}"'
    )
    expect(page.locator("#run-state")).to_contain_text("1 credit")
    secret = secret_on(page, live)

    page.get_by_role("link", name="Open the console with this key").click()
    expect(page.get_by_label("API key")).to_have_value(secret)
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator("#status")).to_contain_text("200 OK")


def test_from_an_account_to_the_first_answer(
    context: BrowserContext, live: Live
) -> None:
    sign_in(context, live, new_user())
    page = context.new_page()
    page.goto("/dashboard/")
    page.get_by_role("link", name="Create a key").click()
    page.get_by_label("Name").fill("Indexer")
    page.get_by_role("checkbox", name="Sample chain").check()
    page.get_by_role("button", name="Create").click()
    page.get_by_role("button", name="Reveal the key").click()
    secret = secret_on(page, live)
    call = copied(page, "the call")
    done = subprocess.run(
        ["sh", "-c", call], capture_output=True, text=True, check=True, timeout=30
    )
    assert json.loads(done.stdout)["result"] == hex(sample.head())

    page.get_by_role("link", name="I have saved it").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Indexer")
    assert secret not in page.content()
    with pytest.raises(Error, match="ERR_CACHE_MISS"):  # the page is in no cache
        page.go_back()
    # The browser is still loading its own error page.
    assert secret not in page.locator("html").inner_html()


def test_request_is_approved_and_the_trace_works(
    browser: Browser, context: BrowserContext, live: Live
) -> None:
    user = new_user()
    boss = User.objects.create_superuser("staff@example.org")
    issued = issue_key(owner=user, name="Indexer")
    live.secrets.append(issued.secret)
    block = find_sample("sample").block_hash
    trace = ("debug_traceBlockByHash", block, {"tracer": "callTracer"})
    refused = ask(live, issued.secret, *trace)
    assert refused.status_code == 403
    assert refused.json()["error"]["data"]["reason"] == "method_not_entitled"

    sign_in(context, live, user)
    page = context.new_page()
    page.goto(f"/dashboard/keys/{issued.api_key.pk}/tracing")
    expect(page.get_by_role("navigation", name="Main")).not_to_contain_text("Explore")
    page.get_by_role("link", name="Request access").click()
    for name in ("prestateTracer", "flatCallTracer"):
        page.get_by_role("checkbox", name=name).uncheck()
    page.get_by_label("What do you need tracing for?").fill("To look into reverts")
    page.get_by_role("button", name="Send the request").click()
    expect(page.get_by_role("status").first).to_contain_text("The request is sent")

    staff = browser.new_context(base_url=live.base_url)
    sign_in(staff, live, boss)
    admin = staff.new_page()
    admin.goto("/admin/keys/accessrequest/")
    expect(admin.locator("#result_list")).to_contain_text("To look into reverts")
    admin.locator("input.action-select").check()
    admin.locator("select[name=action]").select_option("approve")
    admin.get_by_role("button", name="Go", exact=False).or_(
        admin.get_by_role("button", name="Run", exact=False)
    ).first.click()
    admin.locator("textarea[name=answer]").fill("Welcome")
    admin.get_by_role("button", name="Approve").click()
    expect(admin.locator(".messagelist")).to_contain_text("approved")
    staff.close()

    answer = ask(live, issued.secret, *trace)
    assert answer.status_code == 200
    assert all("result" in one for one in answer.json()["result"])
    narrower = ask(live, issued.secret, *trace[:2], {"tracer": "prestateTracer"})
    assert narrower.json()["error"]["data"]["reason"] == "tracer_not_entitled"
    page.reload()
    expect(page.get_by_role("main")).to_contain_text("Welcome")
    page.get_by_role("link", name="Explore").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Explore")
    assert "see a network yet" not in page.content()
    wait_until(lambda: "Tracing on Sample chain: approved" in live.log())


def test_rolled_key_opens_beside_the_old_one_until_that_is_revoked(
    context: BrowserContext, live: Live
) -> None:
    user = new_user()
    old = issue_key(owner=user, name="Indexer")
    live.secrets.append(old.secret)
    sign_in(context, live, user)
    page = context.new_page()
    page.goto(f"/dashboard/keys/{old.api_key.pk}/roll")
    page.get_by_role("radio", name="in 1 hour").check()
    page.get_by_role("button", name="Roll the key").click()
    expect(page.get_by_role("main")).to_contain_text(
        f"{old.version.hint} remains valid until"
    )
    new = secret_on(page, live)
    for secret in (old.secret, new):
        assert ask(live, secret, "eth_chainId").status_code == 200
    page.get_by_role("link", name="I have saved it").click()
    page.get_by_role("link", name="Overview").click()
    page.get_by_role("link", name=f"Revoke… {old.version.hint}").click()
    page.get_by_label("to confirm").fill(old.version.hint[-4:])
    page.get_by_role("button", name="Revoke permanently").click()
    expect(page.get_by_role("status").first).to_contain_text("is revoked")
    gone = ask(live, old.secret, "eth_chainId")
    assert gone.json()["error"]["data"]["reason"] == "key_revoked"
    assert ask(live, new, "eth_chainId").status_code == 200


def test_form_that_is_sent_after_the_session_has_ended(
    context: BrowserContext, live: Live
) -> None:
    user = new_user()
    # The service does not know the password hasher of the tests.
    user.password = PBKDF2PasswordHasher().encode(PASSWORD, "salt")
    user.save()
    key = create_key(owner=user, name="Indexer")
    sign_in(context, live, user)
    page = context.new_page()
    page.goto(f"/dashboard/keys/{key.pk}")
    (session,) = (one for one in context.cookies() if one["name"] == "sessionid")
    Session.objects.filter(session_key=session["value"]).delete()
    page.get_by_role("button", name="Disable").click()
    expect(page.get_by_role("status")).to_contain_text("You were logged out")
    page.get_by_label("Email address").fill(user.email)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("main").get_by_role("button", name="Log in").click()
    page.get_by_role("button", name="Disable").click()
    expect(page.get_by_role("status").first).to_contain_text("is disabled")


def test_name_that_is_rejected_stays_in_its_field(browser: Browser, live: Live) -> None:
    # The console has a line about the response with status 400.
    context = browser.new_context(base_url=live.base_url)
    user = new_user()
    key = create_key(owner=user, name="Indexer")
    sign_in(context, live, user)
    page = context.new_page()
    page.goto(f"/dashboard/keys/{key.pk}")
    page.get_by_label("Name").fill("In\u202edexer 2")
    page.get_by_role("button", name="Rename").click()
    expect(page.get_by_role("main")).to_contain_text("U+202E")
    expect(page.get_by_label("Name")).to_have_value("In\u202edexer 2")
    check_page(page, "rejected name")
    page.get_by_label("Name").fill("Indexer 2")
    page.get_by_role("button", name="Rename").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Indexer 2")
    context.close()


PAGES = ["/", "/account/", "/account/password", "/dashboard/keys/new"]
PAGES_OF_A_KEY = [
    *("/tracing", "/tracing/sample", "/allowlists", "/activity", "/roll", "/delete")
]
CHANGED = ["", "/connect", "/usage"]
"""Pages of a key to which scripts add something."""


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_pages_fit_with_and_without_scripts(
    browser: Browser, live: Live, scripts: bool
) -> None:
    """Other pages with scripts are checked by test_every_page.py."""
    user = new_user()
    key = create_key(owner=user, name="Averyveryverylongnamewithoutanyspaceinit" * 2)
    faults: list[str] = []
    context = browser.new_context(base_url=live.base_url, java_script_enabled=scripts)
    context.on("console", lambda line: faults.append(line.text))
    sign_in(context, live, user)
    page = context.new_page()
    of_key = [*CHANGED, *(() if scripts else PAGES_OF_A_KEY)]
    for place in [
        "/dashboard/",
        *(f"/dashboard/keys/{key.pk}{one}" for one in of_key),
        *(() if scripts else PAGES),
    ]:
        answer = page.goto(place)
        assert answer is not None and answer.status == 200, place
        for width in WIDTHS.values():
            set_width(page, width)
            assert width_of(page) <= width, (place, width)
    context.close()
    assert faults == []
