"""Staff in a real browser."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone
from playwright.sync_api import BrowserContext, expect

from keys.models import KeyEvent, User
from keys.services import create_key, disable_key, set_allowlist, update_key
from networks.models import Network
from tests.browser.conftest import sign_in
from tests.support.browser import needs_chromium
from tests.support.live import Live
from tests.support.wallet import new_user

pytestmark = needs_chromium


def test_only_edited_fields_of_a_concurrently_changed_key_are_saved(
    context: BrowserContext, live: Live
) -> None:
    expires_at = timezone.now() + timedelta(days=30)
    api_key = create_key(
        owner=new_user(),
        name="Indexer",
        networks=Network.objects.all(),
        expires_at=expires_at,
    )
    sign_in(context, live, User.objects.create_superuser("officer@example.org"))
    page = context.new_page()
    page.goto(f"/admin/keys/apikey/{api_key.pk}/change/")
    expect(page.locator("#id_networks_to option")).to_have_count(1)
    disable_key(api_key=api_key, reason="abuse")
    set_allowlist(api_key=api_key, kind="ip", values=["192.0.2.7"])
    update_key(api_key=api_key, staff_note="see ticket 7")
    last = KeyEvent.objects.latest("id").pk
    page.locator("#id_name").fill("Archive")
    page.get_by_role("button", name="Save and continue editing").click()
    expect(page.locator(".messagelist")).to_contain_text("changed")
    api_key.refresh_from_db()
    assert (api_key.name, api_key.is_enabled) == ("Archive", False)
    assert (api_key.staff_note, api_key.expires_at) == ("see ticket 7", expires_at)
    assert api_key.allowlist.count() == api_key.networks.count() == 1
    written = KeyEvent.objects.filter(pk__gt=last)
    assert [event.data for event in written] == [{"name": ["Indexer", "Archive"]}]
    page.get_by_role("checkbox", name="Is enabled").check()
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".messagelist")).to_contain_text("changed")
    api_key.refresh_from_db()
    assert api_key.is_enabled


def test_changes_outlast_a_mistake_elsewhere_on_the_page(
    context: BrowserContext, live: Live
) -> None:
    api_key = create_key(owner=new_user(), name="Indexer")
    sign_in(context, live, User.objects.create_superuser("clerk@example.org"))
    page = context.new_page()
    page.goto(f"/admin/keys/apikey/{api_key.pk}/change/")
    page.locator("#id_expires_at_0").fill("2999-01-01")
    page.locator("#id_expires_at_1").fill("00:00:00")
    page.locator("#id_networks_from option").first.dblclick()
    expect(page.locator("#id_networks_to option")).to_have_count(1)
    page.get_by_role("checkbox", name="Is enabled").uncheck()
    page.locator("#id_staff_note").fill("see ticket 7")
    page.get_by_text("Add another Allowlist entry").click()
    page.locator("#id_allowlist-0-kind").select_option("ip")
    page.locator("#id_allowlist-0-value").fill("no address")
    page.get_by_role("button", name="Save and continue editing").click()
    expect(page.locator(".errornote")).to_be_visible()
    page.locator("#id_allowlist-0-value").fill("192.0.2.7")
    page.get_by_role("button", name="Save and continue editing").click()
    expect(page.locator(".messagelist")).to_contain_text("changed")
    api_key.refresh_from_db()
    assert (api_key.is_enabled, api_key.staff_note) == (False, "see ticket 7")
    assert (api_key.networks.count(), api_key.allowlist.count()) == (1, 1)
    assert api_key.expires_at is not None
