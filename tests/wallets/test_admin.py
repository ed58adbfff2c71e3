from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.db.models import F
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from abi.addresses import with_checksum
from keys.models import User
from tests.support.live_sockets import open_socket_of, serve_process
from tests.support.rows import make_network
from tests.support.wallet import A1, BY_USER, new_user
from wallets import admin, scopes
from wallets.models import (
    CREATE_SESSION,
    Activity,
    Actor,
    BlockedDapp,
    ConsentRequest,
    Dapp,
    DappKind,
    Event,
    Session,
)
from wallets.scopes import ScopeObject
from wallets.services import pairing
from wallets.services.accounts import add_account
from wallets.services.sessions import lock_session, write_session
from wallets.templatetags import wallet_overview as overview
from wallets.templatetags.wallet_overview import DAYS, plots, tiles

pytestmark = pytest.mark.django_db
MODELS = [
    "account",
    "activity",
    "blockeddapp",
    "consentrequest",
    "dapp",
    "livesocket",
    "pairing",
    "session",
]


@pytest.fixture
def staff() -> Client:
    """Return the HTTP client of a superuser."""
    user = User.objects.create_superuser("staff@example.org", "a password")
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def dapp(db: None) -> Dapp:
    """Return a dapp with a session and a token."""
    make_network("main", chain_id=1, head_number=1)
    user = new_user()
    add_account(user=user, address=A1, cause=BY_USER)
    code = pairing.start_program_pairing(user=user, label="bot")
    dapp = pairing.redeem_program_code(code=code, cause=BY_USER).token.dapp
    granted = {"eip155:1": ScopeObject(("eth_chainId",), (), (f"eip155:1:{A1}",))}
    write_session(lock_session(dapp.pk), granted, event=Event.GRANTED, cause=BY_USER)
    serve_process(7)
    open_socket_of(dapp, process=7)
    return dapp


def test_pages_of_accounts_show_checksums(staff: Client, dapp: Dapp) -> None:
    account = dapp.user.wallet_accounts.get()
    for page in (
        reverse("admin:wallets_account_changelist"),
        reverse("admin:wallets_account_change", args=[account.pk]),
    ):
        assert with_checksum(A1).encode() in staff.get(page).content


def act(client: Client, model: str, action: str, *rows) -> None:
    data = {"action": action, "_selected_action": [row.pk for row in rows]}
    url = reverse(f"admin:wallets_{model}_changelist")
    response = client.post(url, data, follow=True)
    assert response.status_code == 200


@pytest.mark.parametrize("model", MODELS)
def test_everything_can_be_looked_at_and_shows_no_secret(staff, dapp, model):
    response = staff.get(reverse(f"admin:wallets_{model}_changelist"))
    assert response.status_code == 200
    pages = [response.content.decode()]
    objects = response.context["cl"].queryset
    for row in objects:
        page = staff.get(reverse(f"admin:wallets_{model}_change", args=[row.pk]))
        assert page.status_code == 200
        pages.append(page.content.decode())
    for digest in [
        *dapp.tokens.values_list("digest", flat=True),
        *pairing.Pairing.objects.values_list("digest", flat=True),
    ]:
        assert not [page for page in pages if digest in page]


@pytest.mark.parametrize("model", sorted(set(MODELS) - {"blockeddapp"}))
def test_staff_make_and_delete_nothing(staff, dapp, model):
    assert staff.get(reverse(f"admin:wallets_{model}_add")).status_code == 403


def test_lists_are_found_by_the_user(staff, dapp):
    for model in ("dapp", "session", "activity", "livesocket"):
        url = reverse(f"admin:wallets_{model}_changelist")
        found = staff.get(url, {"q": dapp.user.email}).context["cl"].queryset
        assert found.count() > 0
        assert staff.get(url, {"q": "nobody@"}).context["cl"].queryset.count() == 0


def listed(staff: Client, model: str, **query: str) -> int:
    """Return the number of rows in a list."""
    page = staff.get(reverse(f"admin:wallets_{model}_changelist"), query)
    assert page.status_code == 200
    return len(page.context["cl"].result_list)


def test_lists_are_found_by_what_staff_know(staff, dapp):
    pairing.pair_dapp(
        user=new_user(),
        kind=DappKind.WEB,
        ident="https://dapp.example",
        cause=BY_USER,
    )
    for term in (dapp.ident, "Bot", " bot ", dapp.user.email.upper()):
        for model in ("dapp", "session", "livesocket"):
            assert listed(staff, model, q=term) == 1, (model, term)
    assert listed(staff, "dapp", q="HTTPS://dapp.example") == 1
    assert listed(staff, "dapp") == 2
    for term in (A1, A1.upper().replace("X", "x"), dapp.user.email):
        assert listed(staff, "account", q=term) == 1, term
    assert listed(staff, "pairing", q="https://dapp.example") == 0
    assert listed(staff, "pairing", q=dapp.user.email) == 1
    for model in ("dapp", "session", "account", "pairing", "activity"):
        assert listed(staff, model, q="nobody") == 0


def test_log_is_found_by_dapp_and_place_among_its_latest_lines(
    staff, dapp, monkeypatch
):
    line = {"user": dapp.user, "event": Event.ASKED, "actor": Actor.DAPP}
    for _ in range(2):
        Activity.objects.create(
            **line, dapp_name="https://d.example", remote_address="192.0.2.7"
        )
    for term in ("https://D.example", "192.0.2.7"):
        assert listed(staff, "activity", q=term) == 2
    monkeypatch.setattr(admin, "LATEST", 1)
    assert listed(staff, "activity", q="192.0.2.7") == 1
    of_user = Activity.objects.filter(user=dapp.user).count()
    assert listed(staff, "activity", q=dapp.user.email) == of_user > 2


def test_requests_are_found_by_method(staff, dapp):
    ends = timezone.now() + timedelta(minutes=5)
    for method in (CREATE_SESSION, "personal_sign", "personal_sign"):
        ConsentRequest.objects.create(
            dapp=dapp, method=method, body={}, socket="x", expires_at=ends
        )
    assert listed(staff, "consentrequest", method="personal_sign") == 2
    assert listed(staff, "consentrequest", q="bot", state__exact="pending") == 3
    assert listed(staff, "consentrequest", method="eth_sendTransaction") == 0


def test_what_is_many_is_counted_so_far(staff, dapp, monkeypatch):
    monkeypatch.setattr(admin, "MAX_USERS", 2)
    monkeypatch.setattr(overview, "MAX_COUNTED", 2)
    origin = "https://evil.example"
    BlockedDapp.objects.create(kind=DappKind.WEB, ident=origin)
    url = reverse("admin:wallets_blockeddapp_changelist")
    for number, said in ((1, ">1<"), (2, ">2<"), (3, ">more than 2<"), (4, "than 2<")):
        Dapp.objects.create(user=new_user(), kind=DappKind.WEB, ident=origin)
        assert said in staff.get(url).content.decode(), number
    words = {tile.name: tile.words for tile in tiles()}
    assert (words["Dapps"], words["Sessions"]) == ("over 2", "1")


def test_list_of_the_blocked_asks_no_more_for_many(staff, dapp):
    url = reverse("admin:wallets_blockeddapp_changelist")
    counts = []
    for number in range(5):
        BlockedDapp.objects.create(ident=f"https://dapp{number}.example")
        with CaptureQueriesContext(connection) as queries:
            staff.get(url)
        counts.append(len(queries))
    assert len(set(counts)) == 1


def test_sockets_are_listed_while_their_process_lives(staff, dapp):
    open_socket_of(dapp, process=8, remote_address="192.0.2.66")
    page = staff.get(reverse("admin:wallets_livesocket_changelist"))
    assert [one.process for one in page.context["cl"].queryset] == [7]
    assert "192.0.2.66" not in page.content.decode()


def test_staff_end_a_session(staff, dapp):
    act(staff, "session", "end", Session.objects.get())
    assert Session.objects.get().scopes == {}
    last = Activity.objects.latest("id")
    assert (last.event, last.actor, last.user) == (
        Event.REVOKED,
        Actor.STAFF,
        dapp.user,
    )
    listed = staff.get(reverse("admin:wallets_session_changelist"))
    assert listed.context["cl"].queryset.count() == 0


def test_staff_disconnect_block_and_let_in_again(staff, dapp):
    act(staff, "dapp", "disconnect", dapp)
    assert Session.objects.get().scopes == {}
    assert not dapp.tokens.live().exists()
    act(staff, "dapp", "block", dapp)
    dapp.refresh_from_db()
    assert dapp.blocked_at is not None
    act(staff, "dapp", "unblock", dapp)
    dapp.refresh_from_db()
    assert dapp.blocked_at is None


def test_staff_who_may_only_look_have_no_actions(dapp):
    viewer = User.objects.create_user("viewer@example.org", "a password", is_staff=True)
    viewer.user_permissions.add(
        *Permission.objects.filter(codename__in=["view_dapp", "view_session"])
    )
    client = Client()
    client.force_login(viewer)
    act(client, "dapp", "block", dapp)
    act(client, "session", "end", dapp.session)
    dapp.refresh_from_db()
    assert dapp.blocked_at is None
    assert scopes.to_json(Session.objects.get().scopes)


def test_staff_block_an_identity_for_all(staff, dapp):
    url = reverse("admin:wallets_blockeddapp_add")
    data = {"kind": DappKind.APP, "ident": dapp.ident, "reason": "phishing"}
    assert staff.post(url, data).status_code == 302
    blocked = BlockedDapp.objects.get()
    assert blocked.blocked_by is not None
    assert Session.objects.get().scopes == {}
    assert "already blocked" in staff.post(url, data).content.decode()
    listed = staff.get(reverse("admin:wallets_blockeddapp_changelist"))
    assert ">1<" in listed.content.decode()


def test_staff_block_what_they_see_for_all_users(staff, dapp):
    origin = "https://evil.example"
    users = [new_user() for _ in range(3)]
    known = [
        pairing.pair_dapp(user=user, kind=DappKind.WEB, ident=origin, cause=BY_USER)
        for user in users
    ]
    act(staff, "dapp", "block_for_everybody", *known[:2])
    act(staff, "dapp", "block_for_everybody", known[2])  # it has this state already
    blocked = BlockedDapp.objects.get()
    assert (blocked.ident, blocked.blocked_by.email) == (origin, "staff@example.org")
    with pytest.raises(pairing.DappBlocked):
        pairing.pair_dapp(
            user=new_user(), kind=DappKind.WEB, ident=origin, cause=BY_USER
        )


def test_overview_counts_what_there_is_and_draws_what_has_happened(staff, dapp):
    Activity.objects.create(user=dapp.user, event=Event.REJECTED, actor=Actor.USER)
    old = Activity.objects.create(user=dapp.user, event=Event.EXPIRED, actor=Actor.USER)
    long_ago = timezone.now() - timedelta(days=DAYS + 1)
    Activity.objects.filter(pk=old.pk).update(at=long_ago)
    shown = {tile.name: tile.count for tile in tiles()}
    assert shown == {
        "Users with accounts": 1,
        "Dapps": 1,
        "Valid connection tokens": 1,
        "Sessions": 1,
        "Open sockets": 1,
        "Pending requests": 0,
        "Blocked for all users": 0,
    }
    requests, connections = plots(timezone.now())
    assert requests.table[-1].cells == ["1", "1", "0", "0"]
    assert connections.table[-1].cells == ["1", "0", "0", "0"]
    assert len(requests.table) == DAYS
    page = staff.get(reverse("admin:app_list", args=["wallets"])).content.decode()
    assert page.count('<svg class="canvas"') == 2
    assert "Open sockets" in page
    for tile in tiles():
        link = reverse("admin:app_list", args=["wallets"]) + tile.model + "/"
        assert f'href="{link}"' in page
        assert staff.get(link).status_code == 200


def test_charts_read_an_index_alone(dapp):
    line = Activity.objects.latest("id")
    for _ in range(400):  # otherwise, all plans cost the same
        line.pk = None
        line.save(force_insert=True)
    Activity.objects.update(at=timezone.now() - timedelta(days=1) * F("id"))
    with CaptureQueriesContext(connection) as captured:
        plots(timezone.now())
    (query,) = captured.captured_queries
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE wallets_activity")
        # The tables of the test have few rows.
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("SET LOCAL enable_bitmapscan = off")
        cursor.execute(f"EXPLAIN {query['sql']}")
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert "Index Only Scan using wallet_log_by_time" in plan


def test_overview_is_for_those_who_may_see_the_log(dapp):
    viewer = User.objects.create_user("viewer@example.org", "a password", is_staff=True)
    viewer.user_permissions.add(Permission.objects.get(codename="view_dapp"))
    client = Client()
    client.force_login(viewer)
    page = client.get(reverse("admin:app_list", args=["wallets"])).content.decode()
    assert "Dapps" in page
    assert "All wallets" not in page
