"""The pages of blocks and transactions: who sees them, and what they show."""

from __future__ import annotations

import gc
import itertools
import re
from datetime import timedelta
from html.parser import HTMLParser
from http import HTTPStatus
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone

from keys.models import User
from keys.services import issue_key
from networks.models import Network
from nodeapi.explore import recorded
from nodeapi.explore.calls import MAX_CALLS
from nodeapi.explore.flame import MAX_ROWS
from nodeapi.models import Block, Transaction, TransactionRecord
from nodeapi.tracers.record import TOO_LARGE, pack
from tests.nodeapi.explore import chain
from tests.support import chains

pytestmark = pytest.mark.usefixtures("hard_network")

REVERTED, TURNED, OWN_ERROR, WIDE, DEEP, MIXED, CREATION = range(7)
"""The transactions of block 1, in their order."""

PASSWORD = "a password"
_numbers = itertools.count()

VOID = {"meta", "link", "input", "br", "hr", "img", "rect"}


@pytest.fixture(scope="module")
def hard_network(module_db: None) -> None:
    """The chain of hard transactions as the networks `hard` and `other`."""
    for slug in ("hard", "other"):
        chains.import_blocks(slug, chain.genesis(), chain.blocks())


@pytest.fixture(scope="module")
def staff(hard_network: None) -> Client:
    client = Client()
    client.force_login(User.objects.create_user("staff@example.org", is_staff=True))
    return client


@pytest.fixture
def customer() -> User:
    """Return a new customer: what hangs on one is kept, so that each test has its own."""
    return User.objects.create_user(f"customer{next(_numbers)}@example.org", PASSWORD)


def block_hash(number: int) -> str:
    canonical = Block.objects.filter(network__slug="hard", is_canonical=True)
    block = canonical.get(number=number)
    return "0x" + bytes(block.hash).hex()


def block_path(number: int = 1, slug: str = "hard") -> str:
    return f"/explore/{slug}/block/{block_hash(number)}"


def row(index: int) -> Transaction:
    blocks = Block.objects.filter(network__slug="hard", is_canonical=True)
    return Transaction.objects.get(block=blocks.get(number=1), index=index)


def transaction_path(index: int, slug: str = "hard") -> str:
    return f"/explore/{slug}/tx/0x{bytes(row(index).hash).hex()}"


def text(response: HttpResponse) -> str:
    assert response.status_code == HTTPStatus.OK
    return response.content.decode()


def see(user: User, path: str) -> HttpResponse:
    client = Client()
    client.force_login(user)
    return client.get(path)


class Balanced(HTMLParser):
    """Sees whether every element is closed in its place."""

    def __init__(self) -> None:
        super().__init__()
        self.opened: list[str] = []
        self.depth = 0
        self.scripts = 0
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.scripts += tag == "script" or any(
            name.startswith("on") for name, _ in attrs
        )
        assert "style" not in dict(attrs)
        self.ids += [value or "" for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.opened.append(tag)
            self.depth = max(self.depth, len(self.opened))

    def handle_endtag(self, tag: str) -> None:
        assert tag in VOID or self.opened.pop() == tag


def parsed(page: str) -> Balanced:
    parser = Balanced()
    parser.feed(page)
    parser.close()
    assert parser.opened == []
    assert len(parser.ids) == len(set(parser.ids))
    return parser


# Who sees them and from where


def test_whoever_is_not_logged_in_is_asked_to_whatever_the_address():
    absent = f"/explore/nothing/tx/0x{'00' * 32}"
    for path in (block_path(), transaction_path(0), absent):
        response = Client().get(path)
        assert response.status_code == HTTPStatus.FOUND
        assert response["Location"] == f"/account/login?next={path}"


def test_logging_in_leads_to_the_page_and_logging_out_away(customer):
    issue_key(owner=customer, may_trace=True)
    client = Client(enforce_csrf_checks=True)
    login = client.get(f"/account/login?next={block_path()}")
    assert "default-src 'none'" in login["Content-Security-Policy"]
    token = re.search(r'csrfmiddlewaretoken" value="(\w+)"', login.content.decode())
    form = {"username": customer.email.upper(), "password": PASSWORD}
    form |= {"next": block_path(), "csrfmiddlewaretoken": token[1]}
    assert client.post("/account/login", form)["Location"] == block_path()
    page = text(client.get(block_path()))
    token = re.search(r'csrfmiddlewaretoken" value="(\w+)"', page)
    client.post("/account/logout", {"csrfmiddlewaretoken": token[1]})
    assert client.get(block_path()).status_code == HTTPStatus.FOUND


def test_a_wrong_password_logs_nobody_in(customer):
    client = Client()
    form = {"username": customer.email, "password": "another"}
    assert "No account has this address and this password" in text(
        client.post("/account/login", form)
    )
    assert client.get(block_path()).status_code == HTTPStatus.FOUND


def test_logging_in_leads_to_no_other_site(customer):
    form = {"username": customer.email, "password": PASSWORD}
    form["next"] = "https://elsewhere.example/"
    response = Client().post("/account/login", form)
    assert response["Location"] == "/dashboard/"


@pytest.mark.parametrize("path", [block_path, lambda: transaction_path(0)])
def test_a_customer_sees_the_networks_that_his_key_may_trace(customer, path):
    assert see(customer, path()).status_code == HTTPStatus.NOT_FOUND
    hard = Network.objects.get(slug="hard")
    issue_key(owner=customer, networks=[hard], may_trace=True)
    assert see(customer, path()).status_code == HTTPStatus.OK
    elsewhere = path().replace("/hard/", "/other/")
    assert see(customer, elsewhere).status_code == HTTPStatus.NOT_FOUND


def test_what_a_customer_may_not_see_looks_like_what_is_not_there(customer):
    hidden = see(customer, block_path())
    absent = see(customer, block_path(slug="nothing"))
    assert hidden.status_code == absent.status_code == HTTPStatus.NOT_FOUND
    assert without_token(hidden) == without_token(absent)


def without_token(page: Any) -> bytes:
    """Return a page without what is another each time: the token of its forms."""
    return re.sub(rb'(name="csrfmiddlewaretoken" value=)"\w+"', rb"\1", page.content)


def _expire(key: Any) -> None:
    past = timezone.now() - timedelta(seconds=1)
    key.entitlements.update(expires_at=past)


def _revoke(key: Any) -> None:
    key.versions.update(revoked_at=timezone.now())


def _disable(key: Any) -> None:
    key.is_enabled = False
    key.save()


def _delete(key: Any) -> None:
    key.deleted_at = timezone.now()
    key.save()


def _close_network(key: Any) -> None:
    key.networks.set(Network.objects.filter(slug="other"))


def _withdraw(key: Any) -> None:
    key.entitlements.all().delete()


@pytest.mark.parametrize(
    "end", [_expire, _revoke, _disable, _delete, _close_network, _withdraw]
)
def test_a_key_that_may_not_trace_any_more_shows_nothing(customer, end):
    key = issue_key(owner=customer, may_trace=True).api_key
    assert see(customer, transaction_path(0)).status_code == HTTPStatus.OK
    end(key)
    assert see(customer, transaction_path(0)).status_code == HTTPStatus.NOT_FOUND


def test_somebody_elses_key_shows_nothing(customer):
    issue_key(owner=User.objects.create_user("somebody@example.org"), may_trace=True)
    assert see(customer, block_path()).status_code == HTTPStatus.NOT_FOUND


@pytest.mark.parametrize(
    ("tracer", "shown", "hidden"),
    [
        ("callTracer", 'id="calls"', 'id="changes"'),
        ("prestateTracer", 'id="changes"', 'id="calls"'),
    ],
)
def test_a_customer_sees_what_the_tracers_that_he_may_use_say(
    customer, tracer, shown, hidden
):
    key = issue_key(owner=customer, may_trace=True).api_key
    key.entitlements.update(tracers=[tracer])
    page = text(see(customer, transaction_path(MIXED)))
    assert shown in page
    assert hidden not in page


def test_the_admins_page_of_a_block_leads_to_it():
    boss = User.objects.create_superuser("boss@example.org")
    block = Block.objects.get(hash=bytes.fromhex(block_hash(1)[2:]), network__slug="hard")  # fmt: skip
    page = text(see(boss, f"/admin/nodeapi/block/{block.pk}/change/"))
    assert f'<a href="{block_path()}">' in page


# What they show


def test_pages_run_nothing_and_stand_in_no_frame_and_no_cache(staff):
    for path in (block_path(), transaction_path(MIXED)):
        response = staff.get(path)
        policy = response["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "script" not in policy
        assert "unsafe" not in policy
        assert response["Cache-Control"] == "private, no-store"
        assert parsed(text(response)).scripts == 0


def test_a_block_shows_its_transactions_a_hundred_at_a_time(staff):
    pages = [text(staff.get(f"{block_path(2)}?page={page}")) for page in (1, 2)]
    found = [re.findall(r"/tx/(0x\w{64})", page) for page in pages]
    hashes = Transaction.objects.filter(block__network__slug="hard", block__number=2)
    expected = ["0x" + bytes(t.hash).hex() for t in hashes.order_by("index")]
    assert found == [expected[:100], expected[100:]]
    assert text(staff.get(block_path(2))).count("/tx/") == 100


@pytest.mark.parametrize("page", ["0", "3", "-1", "x", "9" * 30, "²", ""])
def test_a_page_that_is_not_there_is_not_found(staff, page):
    response = staff.get(f"{block_path(2)}?page={page}")
    assert response.status_code == HTTPStatus.NOT_FOUND


def test_a_block_leads_to_its_parent_and_its_children(staff):
    page = text(staff.get(block_path(1)))
    parent, child = (f'href="{block_path(number)}"' for number in (0, 2))
    assert f'<a rel="prev" {parent}' in page
    assert f'<a rel="next" {child}' in page
    assert "No parent" in text(staff.get(block_path(0)))


def test_a_block_shows_status_gas_value_and_selector(staff):
    cells = re.findall(r'<tr>\s*<td class="number" data-label="No.">.*?</tr>', text(staff.get(block_path())), re.DOTALL)  # fmt: skip
    assert len(cells) == 7
    assert all(word in cells[REVERTED] for word in ("failed", "0x08c379a0"))
    assert all(word in cells[CREATION] for word in ("success", "creation", "1 ether"))


@pytest.mark.parametrize("path", ["block", "tx"])
def test_a_hash_that_is_not_there_is_not_found(staff, path):
    response = staff.get(f"/explore/hard/{path}/0x{'ab' * 32}")
    assert response.status_code == HTTPStatus.NOT_FOUND


def test_a_transaction_is_found_in_the_block_that_is_named(staff):
    path = transaction_path(0)
    assert f"?block={block_hash(1)}" not in text(staff.get(f"{path}?block={block_hash(1)}"))  # fmt: skip
    for other in (block_hash(2), "0x", "zz"):
        response = staff.get(f"{path}?block={other}")
        assert response.status_code == HTTPStatus.NOT_FOUND


def test_a_side_blocks_transactions_are_shown_as_they_were_there(staff):
    side = Block.objects.get(network__slug="hard", is_canonical=False)
    path = f"/explore/hard/block/0x{bytes(side.hash).hex()}"
    link = f"{transaction_path(REVERTED)}?block=0x{bytes(side.hash).hex()}"
    page = text(staff.get(path))
    assert "side block</span>" in page
    assert f'href="{link}"' in page
    assert "in a side block" in text(staff.get(link))
    assert "side block" not in text(staff.get(transaction_path(REVERTED)))
    assert f'href="{path}">Child, 1 (side block)' in text(staff.get(block_path(0)))


def test_what_a_revert_says_is_text_and_nothing_else(staff):
    page = text(staff.get(transaction_path(REVERTED)))
    assert chain.SCRIPT not in page
    assert "“&lt;script&gt;alert(1)&lt;/script&gt;”" in page
    assert parsed(page).scripts == 0


def test_what_a_revert_says_turns_no_writing_around(staff):
    page = text(staff.get(transaction_path(TURNED)))
    assert "“a\ufffddlog\ufffd”" in page
    assert "\u202e" not in page
    assert "\0" not in page


def test_an_error_of_the_contracts_own_is_named_by_its_selector(staff):
    assert "error 0x01020304" in text(staff.get(transaction_path(OWN_ERROR)))


def test_calls_of_every_kind_are_shown(staff):
    page = text(staff.get(transaction_path(MIXED)))
    for kind, type_ in (
        ("call", "CALL"),
        ("delegate", "DELEGATECALL"),
        ("failed", "STATICCALL"),
        ("failed", "CREATE"),
        ("create", "CREATE"),
    ):
        assert f'<span class="badge {kind}">{type_}</span>' in page
    assert "“not today”" in page
    assert page.count("<dt>log ") == 3
    assert '<span class="value">1 ether</span>' in page


def test_changes_of_balances_and_slots_are_shown(staff):
    page = text(staff.get(transaction_path(MIXED)))
    changes = page[page.index('id="changes"') :]
    assert "5 ether" in changes
    assert "4 ether <small>(−1 ether)" in changes
    slots = re.findall(r"storage <code>(\w+)</code>.*?<code>(\w+)</code>.*?<code>(\w+)</code>", changes, re.DOTALL)  # fmt: skip
    assert slots == [("0x1", "0x0", "0x7"), ("0x2", "0x9", "0x0"), ("0x3", "0x0", "0x1")]  # fmt: skip


def test_a_creation_shows_its_contract(staff):
    page = text(staff.get(transaction_path(CREATION)))
    assert re.search(r"<dt>contract</dt><dd><code>0x\w{40}</code>", page)
    assert "not there</td>" in page


# How much they show


def test_of_many_calls_the_first_are_shown_and_the_rest_counted(staff):
    page = text(staff.get(transaction_path(WIDE)))
    assert f"first {MAX_CALLS} calls are shown; hidden: {20_001 - MAX_CALLS:,} more calls" in page  # fmt: skip
    assert len(page) < 500_000
    assert "20,000 short calls" in page
    parsed(page)


def test_deep_calls_stay_within_what_browsers_nest(staff):
    page = text(staff.get(transaction_path(DEEP)))
    assert len(re.findall(r'id="call-\d+"', page)) == 301
    assert parsed(page).depth < 200
    assert page.count("<rect") == MAX_ROWS


def test_bars_lead_to_calls_that_are_there(staff):
    for index in (WIDE, DEEP, MIXED):
        page = text(staff.get(transaction_path(index)))
        targets = set(re.findall(r'href="#(call-\d+)"', page))
        assert targets
        assert targets <= set(parsed(page).ids)


@pytest.fixture
def changed_record() -> Any:
    """Give the record of a transaction, to be changed for the time of a test."""
    place = {"block": row(REVERTED).block_id, "index": REVERTED}
    kept = TransactionRecord.objects.filter(**place)
    before = kept.values("calls", "prestate", "details", "calls_size").get()
    yield kept
    kept.update(**before)


def test_what_was_too_much_to_be_recorded_is_said_to_be(staff, changed_record):
    changed_record.update(calls=TOO_LARGE, calls_size=0)
    page = text(staff.get(transaction_path(REVERTED)))
    assert "did too much to be recorded" in page
    assert 'id="call-1"' not in page
    assert "balance" in page


def test_what_is_too_long_for_a_page_is_not_unpacked(staff, changed_record):
    changed_record.update(calls_size=recorded.MAX_UNPACKED_BYTES + 1)
    assert "too long for a page" in text(staff.get(transaction_path(REVERTED)))


def test_records_that_unpack_to_more_than_they_seem_are_not_unpacked(
    staff, changed_record
):
    long = pack(bytes(recorded.MAX_UNPACKED_BYTES + 1))
    assert len(long) < 10_000
    changed_record.update(details=long)
    page = text(staff.get(transaction_path(REVERTED)))
    assert page.count("too long for a page") == 3  # gas, calls, changes


def test_garbage_is_collected_again_after_a_page(staff):
    text(staff.get(transaction_path(WIDE)))
    assert gc.isenabled()


def test_only_a_few_long_records_are_in_memory_at_once(staff, monkeypatch):
    monkeypatch.setattr(recorded, "_WAIT_SECONDS", 0.01)
    with recorded.room(), recorded.room():
        response = staff.get(transaction_path(REVERTED))
    assert response.status_code == HTTPStatus.SERVICE_UNAVAILABLE
    assert text(staff.get(transaction_path(REVERTED)))
