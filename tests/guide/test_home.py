"""The home page shows the served networks to everyone, with few queries."""

from __future__ import annotations

import html
import re
import threading
from collections.abc import Iterator
from http import HTTPStatus

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from guide.computed import Computed
from keys.models import Plan, User
from networks.models import Network
from samples.builder import ChainBuilder
from tests.explorer.chain import ALICE, GAS_PRICE_WEI, MIXED, genesis
from tests.support import chains
from tests.support.followed import FollowedChain
from tests.support.showcase import forget_facts

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def nothing_kept() -> Iterator[None]:
    forget_facts()
    yield
    forget_facts()


@pytest.fixture
def chain() -> FollowedChain:
    return FollowedChain()


def see(client: Client | None = None, path: str = "/") -> str:
    answer = (client or Client()).get(path)
    assert answer.status_code == HTTPStatus.OK
    return html.unescape(answer.content.decode())


def test_empty_installation_says_that_nothing_is_served() -> None:
    page = see()
    assert "No networks are available yet." in page
    assert "Make a call" not in page and "Trace a transaction" not in page
    assert "live.js" not in page


def test_networks_their_heads_and_the_response_are_there(chain: FollowedChain) -> None:
    chain.grow(17)
    page = see()
    assert chain.network.name in page
    assert '<td class="number" data-label="Head">17</td>' in page
    assert f"http://testserver/{chain.network.slug}/v3/YOUR_KEY" in page
    assert '{"jsonrpc":"2.0","id":1,"result":"0x11"}' in page
    for client in ("curl", "web3.py", "viem"):
        assert f'data-copy="the call for {client}"' in page


def test_part_that_follows_the_heads_changes_with_them(chain: FollowedChain) -> None:
    chain.grow(1)
    first = Client().get("/?part=heads")
    tag = {"If-None-Match": first["ETag"]}
    assert Client().get("/?part=heads", headers=tag).status_code == 304
    chain.grow(1)
    forget_facts()
    second = Client().get("/?part=heads", headers=tag)
    assert second.status_code == HTTPStatus.OK
    text = html.unescape(second.content.decode())
    assert '"result":"0x2"' in text and ">2</td>" in text
    for element in re.findall(r'id="([\w-]+)" data-live', text):
        assert f'id="{element}" data-live' in see()


def test_visitors_cause_no_queries_while_the_facts_are_kept(
    chain: FollowedChain, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain.grow(1)
    see()
    see(path="/?part=heads")
    with CaptureQueriesContext(connection) as queries:
        for _ in range(5):
            see()
            see(path="/?part=heads")
    assert len(queries) <= 2  # the cached facts may expire in the meantime


def test_networks_with_a_public_explorer_lead_there(chain: FollowedChain) -> None:
    chain.grow(1)
    link = f'href="/explore/{chain.network.slug}/"'
    page = see()
    assert link not in page and 'href="/explore/"' not in page
    Network.objects.update(public_explorer=True)
    forget_facts()
    page = see()
    assert link in page and 'href="/explore/"' in page


def test_key_is_shown_only_if_the_provider_says_so(
    chain: FollowedChain, settings
) -> None:
    chain.grow(1)
    settings.HOME_API_KEY = "nk_for_everyone"
    page = see()
    assert f"/{chain.network.slug}/v3/nk_for_everyone" in page
    assert "YOUR_KEY" not in page


def test_log_in_of_the_demonstration_is_explained_there_alone(settings) -> None:
    assert "customer@example.org" not in see()
    settings.DEMO = True
    page = see()
    assert "Log in as customer" in page and "Log in as staff" in page
    assert "staff@example.org" in page
    user = User.objects.create_user("somebody@example.org")
    client = Client()
    client.force_login(user)
    assert "Log in as staff" not in see(client)


def test_trace_is_shown_where_everyone_may_see_it(settings) -> None:
    built = ChainBuilder(genesis())
    built.send(ALICE, MIXED, gas=2_000_000, gas_price=GAS_PRICE_WEI)
    block = built.block()
    chains.import_blocks("net", genesis(), [block])
    assert "Trace a transaction" not in see()
    forget_facts()
    settings.DEMO = True
    page = see()
    assert "Trace a transaction" in page
    assert f"0x{block.transactions[0].hash.hex()}" in page
    assert page.count("<rect") > 1


def test_plans_have_their_limits() -> None:
    Plan.objects.create(
        slug="large", name="Large", credits_per_second=1234, credits_per_day=98_765
    )
    page = see()
    assert "Large" in page and "1,234" in page and "98,765" in page
    assert ">2,468<" in page, "a burst of two seconds of the rate"


def test_one_of_many_threads_computes() -> None:
    entered, leave = threading.Event(), threading.Event()
    computed: list[int] = []

    def compute() -> int:
        entered.set()
        leave.wait(60)
        computed.append(1)
        return len(computed)

    kept = Computed(compute, 60)
    found: list[int] = []
    threads = [
        threading.Thread(target=lambda: found.append(kept.get())) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    assert entered.wait(60)
    leave.set()
    for thread in threads:
        thread.join()
    assert found == [1] * 8


def test_result_is_computed_again_after_its_time() -> None:
    now = 0.0
    numbers = iter(range(10))
    kept = Computed(lambda: next(numbers), 2.0, lambda: now)
    assert [kept.get(), kept.get()] == [0, 0]
    now = 2.0
    assert kept.get() == 1
    kept.clear()
    assert kept.get() == 2
