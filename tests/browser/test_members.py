"""Members of a customer account in a real browser: invitation, work, removal."""

from __future__ import annotations

import re

from django.contrib.auth.hashers import PBKDF2PasswordHasher
from playwright.sync_api import Browser, BrowserContext, expect

from keys.models import Membership, Role, User
from keys.services import invite, issue_key
from tests.browser.conftest import PASSWORD, ask, copied, mailed_path, sign_in
from tests.support.browser import needs_chromium
from tests.support.live import Live
from tests.support.wallet import new_user

pytestmark = needs_chromium


def test_new_person_joins_works_and_is_removed(
    browser: Browser, context: BrowserContext, live: Live
) -> None:
    owner = new_user()
    key = issue_key(owner=owner, name="Indexer")
    live.secrets.append(key.secret)
    sign_in(context, live, owner)
    page = context.new_page()
    page.goto("/dashboard/")
    page.get_by_role("link", name="Members").click()
    page.get_by_role("link", name="Invite a member").click()
    page.get_by_label("Email address").fill("dev@example.org")
    page.get_by_role("radio", name=re.compile("^Developer")).check()
    page.get_by_role("button", name="Send the invitation").click()
    expect(page.get_by_role("status")).to_contain_text("was sent to dev@example.org")

    theirs = browser.new_context(
        base_url=live.base_url, permissions=["clipboard-read", "clipboard-write"]
    )
    other = theirs.new_page()
    other.goto(mailed_path(live, "/account/invitations"))
    expect(other.get_by_role("main")).to_contain_text(
        f"{owner} invited dev@example.org"
    )
    other.get_by_label("New password", exact=False).first.fill(PASSWORD)
    other.get_by_label("New password confirmation").fill(PASSWORD)
    other.get_by_role("button", name="Create the account and join").click()
    expect(other.get_by_role("status")).to_contain_text("You have joined the account")

    other.get_by_role("link", name="Indexer").click()
    other.get_by_role("link", name="Roll the key…").click()
    other.get_by_role("radio", name="immediately").check()
    other.get_by_role("button", name="Roll the key").click()
    secret = copied(other, "the key")
    live.secrets.append(secret)
    assert ask(live, secret, "eth_chainId").status_code == 200
    assert ask(live, key.secret, "eth_chainId").status_code == 401

    page.get_by_role("link", name="Keys").first.click()
    page.get_by_role("link", name="Indexer").click()
    page.get_by_role("link", name="History").click()
    newest = page.get_by_role("row").nth(1)
    expect(newest).to_contain_text("rolled")
    expect(newest).to_contain_text("dev@example.org developer")

    page.get_by_role("link", name="Members").click()
    page.get_by_label("Role of dev@example.org").select_option("viewer")
    page.get_by_role("button", name="Change").click()
    expect(page.get_by_role("status")).to_contain_text("has the role viewer")
    other.get_by_role("link", name="I have saved it").click()
    other.get_by_role("link", name="Overview").click()
    expect(other.get_by_role("link", name="Roll the key…")).to_have_count(0)

    page.get_by_role("link", name="Remove… dev@example.org").click()
    page.get_by_role("button", name="Remove").click()
    expect(page.get_by_role("status")).to_contain_text("is no longer a member")
    answer = other.reload()
    assert answer is not None and answer.status == 404
    other.goto("/dashboard/")
    expect(other.get_by_role("status")).to_contain_text("You no longer have access")
    theirs.close()


def test_user_joins_and_switches_between_accounts(
    context: BrowserContext, live: Live
) -> None:
    owner, consultant = new_user(), new_user()
    # The service does not know the password hasher of the tests.
    consultant.password = PBKDF2PasswordHasher().encode(PASSWORD, "salt")
    consultant.save()
    for user, name in ((owner, "Theirs"), (consultant, "Mine")):
        live.secrets.append(issue_key(owner=user, name=name).secret)
    invited = invite(account=owner, email=consultant.email, role=Role.VIEWER)

    page = context.new_page()
    page.goto(f"/account/invitations/{invited.token}")
    page.get_by_role("main").get_by_role("link", name="Log in").click()
    page.get_by_label("Email address").fill(consultant.email)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("main").get_by_role("button", name="Log in").click()
    page.get_by_role("button", name="Join").click()
    expect(page.get_by_role("link", name="Theirs")).to_be_visible()
    expect(page.get_by_role("link", name="Create a key")).to_have_count(0)

    page.locator(".switcher summary").click()
    page.get_by_role("button", name="your own").click()
    expect(page.get_by_role("link", name="Mine")).to_be_visible()
    expect(page.get_by_role("link", name="Theirs")).to_have_count(0)
    expect(page.get_by_role("link", name="Create a key")).to_be_visible()

    page.locator(".switcher summary").focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name=str(owner)).press("Enter")
    page.get_by_role("link", name="Members").click()
    page.get_by_role("link", name="Leave…").click()
    page.get_by_role("button", name="Leave").click()
    expect(page.get_by_role("status")).to_contain_text("You have left the account")
    assert not Membership.objects.filter(account=owner).exists()


def test_owner_withdraws_and_sends_again(
    browser: Browser, context: BrowserContext, live: Live
) -> None:
    owner = new_user()
    invited = invite(account=owner, email="late@example.org", role=Role.OWNER)
    sign_in(context, live, owner)
    page = context.new_page()
    page.goto("/dashboard/members")
    page.get_by_role("button", name="Send again to late@example.org").click()
    expect(page.get_by_role("status")).to_contain_text("was sent")
    visitor = browser.new_page(base_url=live.base_url)
    visitor.goto(f"/account/invitations/{invited.token}")
    expect(visitor.get_by_role("heading", level=1)).to_have_text(
        "This invitation is no longer valid"
    )
    page.get_by_role("button", name="Withdraw the invitation of").click()
    expect(page.get_by_role("heading", name="Invitations")).to_have_count(0)
    assert not User.objects.filter(email="late@example.org").exists()
    assert not Membership.objects.filter(role=Role.OWNER).exists()
    visitor.close()
