"""The admin's status page of a network."""

from __future__ import annotations

import logging
import re
from datetime import UTC, datetime, timedelta
from http import HTTPStatus

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from keys.models import User
from networks.models import Network
from nodeapi.models import (
    FollowerStatus,
    ImportTiming,
    QuarantinedBlock,
    UpstreamStatus,
)
from nodeapi.status.charts import MAX_SAMPLES, import_charts
from tests.explorer.pages import parsed, text
from tests.support.followed import (
    SECRET,
    FollowedChain,
    add_quarantined,
    add_statuses,
    add_timings,
    add_upstreams,
)
from tests.support.rows import make_network

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def chain() -> FollowedChain:
    chain = FollowedChain()
    chain.grow(3)
    return chain


@pytest.fixture
def boss() -> Client:
    return logged_in(User.objects.create_superuser("boss@example.org"))


def logged_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def staff_with(*codenames: str) -> Client:
    user = User.objects.create_user("clerk@example.org", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    return logged_in(user)


def status_path(network) -> str:
    return f"/admin/networks/network/{network.pk}/status/"


def release_path(network) -> str:
    return f"{status_path(network)}release/"


def tiles(page: str) -> dict[str, str]:
    """Return the tiles of the page: their texts by their names."""
    found = re.findall(r"<dt>(\w+)</dt><dd>(.*?)</dd>", page)
    return {name: " ".join(re.sub(r"<[^>]+>", " ", value).split()) for name, value in found}  # fmt: skip


def test_list_and_form_of_a_network_lead_to_its_status(chain, boss):
    link = f'href="{status_path(chain.network)}"'
    assert link in text(boss.get("/admin/networks/network/"))
    change = f"/admin/networks/network/{chain.network.pk}/change/"
    assert link in text(boss.get(change))


def test_a_network_without_anything_has_a_page(boss):
    page = text(boss.get(status_path(make_network("bare"))))
    assert tiles(page) == {
        "Head": "– no blocks yet",
        "Lag": "– unknown",
        "Safe": "– unknown",
        "Finalized": "– unknown",
        "Follower": "no upstreams",
    }
    assert "The network has no upstreams." in page
    assert "No block is quarantined." in page
    assert "No reorganisations yet." in page
    assert "No block was imported from an upstream" in page
    parsed(page)


def test_the_checkpoint_is_shown(boss):
    network = make_network("bare", checkpoint_number=500, oldest_number=245)
    shown = tiles(text(boss.get(status_path(network))))
    assert shown["Checkpoint"] == "500 blocks from 245 on"


def test_head_lag_and_tags_are_shown(chain, boss):
    chain.finalize(safe=2, finalized=1)
    upstreams = add_upstreams(chain.network)
    add_statuses(chain.network, upstreams, timezone.now(), behind=5)
    shown = tiles(text(boss.get(status_path(chain.network))))
    assert shown["Head"].startswith("3 ")
    assert re.fullmatch(r"\d+ min 5 blocks", shown["Lag"])
    assert (shown["Safe"], shown["Finalized"]) == ("2", "1")
    assert shown["Follower"].startswith("catching up since ")
    add_statuses(chain.network, upstreams, timezone.now())
    shown = tiles(text(boss.get(status_path(chain.network))))
    assert shown["Lag"] == "0 s 0 blocks"
    assert shown["Follower"].startswith("following since ")


def test_a_follower_that_is_silent_has_stopped(chain, boss):
    add_statuses(chain.network, add_upstreams(chain.network), timezone.now())
    FollowerStatus.objects.update(updated_at=timezone.now() - timedelta(minutes=1))
    page = text(boss.get(status_path(chain.network)))
    assert tiles(page)["Follower"].startswith("stopped last status ")
    assert '<div class="warned"><dt>Follower' in page


def test_an_alarm_is_shown(chain, boss):
    add_statuses(chain.network, add_upstreams(chain.network), timezone.now())
    FollowerStatus.objects.update(alarm="The head 0x12 is <below> finalized block 2.")
    page = text(boss.get(status_path(chain.network)))
    assert 'role="alert">The head 0x12 is &lt;below&gt; finalized block 2.<' in page


def test_a_fork_that_is_not_supported_is_announced(chain, boss):
    network = chain.network
    network.genesis["config"]["futureTime"] = 1_900_000_000
    network.save(update_fields=["genesis"])
    page = text(boss.get(status_path(network)))
    assert "The fork future at 2030-03-17" in page
    assert "is not supported" in page


def test_other_fork_schedules_of_upstreams_are_announced(chain, boss):
    add_statuses(chain.network, add_upstreams(chain.network), timezone.now())
    warned = UpstreamStatus.objects.filter(upstream__is_enabled=True).first()
    warned.fork_warnings = "The blob schedule <differs>.\nAnd more."
    warned.save()
    page = text(boss.get(status_path(chain.network)))
    for sentence in ("The blob schedule &lt;differs&gt;.", "And more."):
        assert f"{warned.upstream}: {sentence}" in page


def test_upstreams_are_shown_with_their_state_and_without_secrets(chain, boss):
    add_statuses(chain.network, add_upstreams(chain.network), timezone.now(), behind=9)
    page = text(boss.get(status_path(chain.network)))
    rows = re.findall(r"<tr>\s*<th scope=\"row\">.*?</tr>", page, re.DOTALL)
    states = [re.search(r'data-label="State">([a-z ]+)', row)[1] for row in rows]
    assert states == ["ok", "behind", "backing off", "disabled"]
    assert "https://mainnet.example/…" in rows[0]
    assert "12 (0.01%)" in rows[0]
    assert "31.4" in rows[0]
    assert "9 behind" in rows[1]
    assert "own geth, rack 4" in rows[1]
    assert "HTTP status 429" in rows[2]
    assert SECRET not in page
    parsed(page)


def test_reorganisations_are_shown(chain, boss):
    old = chain.reorganise()
    section = text(boss.get(status_path(chain.network))).partition('id="reorg')[2]
    assert f"block/0x{old[-1].header.hash.hex()}" in section
    assert re.findall(r'<td class="number" data-label="[\w ]+">(\d+)</td>', section)[
        :3
    ] == ["3", "3", "4"]


def test_a_quarantined_block_is_released_and_that_is_logged(chain, boss, caplog):
    upstream = add_upstreams(chain.network)[0]
    block = add_quarantined(chain.network, upstream)
    add_quarantined(chain.network, None)  # another upstream sent it as well
    page = text(boss.get(status_path(chain.network)))
    assert block.reason in page
    assert f'form="release" name="block" value="{block.pk}"' in page
    with caplog.at_level(logging.INFO):
        response = boss.post(release_path(chain.network), {"block": block.pk})
    assert response["Location"] == status_path(chain.network)
    assert not QuarantinedBlock.objects.exists()
    assert "5a5a was released from quarantine" in caplog.text
    entry = LogEntry.objects.get()
    assert (entry.user.email, entry.object_id) == ("boss@example.org", str(chain.network.pk))  # fmt: skip
    assert "Released the quarantined block 41 0x5a5a" in entry.get_change_message()
    # A second click does not cause an error.
    page = text(
        boss.post(release_path(chain.network), {"block": block.pk}, follow=True)
    )
    assert "The block is no longer quarantined." in page


def test_only_staff_who_may_change_the_network_release_blocks(chain):
    block = add_quarantined(chain.network, None)
    clerk = staff_with("view_network")
    page = text(clerk.get(status_path(chain.network)))
    assert block.reason in page
    assert "deleted" in page
    assert 'name="block"' not in page
    response = clerk.post(release_path(chain.network), {"block": block.pk})
    assert response.status_code == HTTPStatus.FORBIDDEN
    assert QuarantinedBlock.objects.exists()


def test_a_block_of_another_network_is_not_released(chain, boss):
    block = add_quarantined(chain.network, None)
    other = make_network("other")
    boss.post(release_path(other), {"block": block.pk})
    assert QuarantinedBlock.objects.exists()
    for wrong in ("", "x", "-1", "9" * 30):
        response = boss.post(release_path(chain.network), {"block": wrong})
        assert response.status_code == HTTPStatus.NOT_FOUND


def test_blocks_are_released_by_a_form_with_a_token_only(chain):
    user = User.objects.create_superuser("boss@example.org")
    client = Client(enforce_csrf_checks=True)
    client.force_login(user)
    path = release_path(chain.network)
    assert client.post(path, {"block": 1}).status_code == HTTPStatus.FORBIDDEN
    assert client.get(path).status_code == HTTPStatus.METHOD_NOT_ALLOWED


def test_the_page_is_for_staff_who_may_view_networks(chain):
    path = status_path(chain.network)
    assert Client().get(path).status_code == HTTPStatus.FOUND
    assert staff_with("view_user").get(path).status_code == HTTPStatus.FORBIDDEN
    boss = logged_in(User.objects.create_superuser("boss@example.org"))
    missing = boss.get("/admin/networks/network/999/status/")
    assert missing.status_code == HTTPStatus.NOT_FOUND


def add_timing(network, number: int, at: datetime, fetch_ms: float = 1) -> None:
    ImportTiming.objects.create(
        network=network,
        number=number,
        at=at,
        fetch_ms=fetch_ms,
        execute_ms=2,
        commit_ms=3,
        transactions=0,
        gas_used=0,
    )


def test_charts_show_the_last_day(chain, boss):
    now = timezone.now()
    for hours, fetch_ms in ((0, 10), (1, 20), (22, 60), (25, 10**6)):
        add_timing(chain.network, 1, now - timedelta(hours=hours), fetch_ms)
    phases, lag = import_charts(chain.network, now)
    figures = {entry.label: entry.figure for entry in phases.legend}
    assert figures == {
        label: f"{value}\N{NARROW NO-BREAK SPACE}ms"
        for label, value in (("fetch", 30), ("execute", 2), ("commit", 3))
    }
    assert len(phases.table) == len(lag.table) == 96
    assert phases.table[-1].cells[0] == "10\N{NARROW NO-BREAK SPACE}ms"
    assert [entry.label for entry in lag.legend] == ["mean", "longest"]
    page = text(boss.get(status_path(chain.network)))
    assert page.count('<figure class="chart">') == 2
    parsed(page)
    # The script of the page requests only the parts that change often.
    live = text(boss.get(f"{status_path(chain.network)}?live"))
    assert "<figure" not in live


def test_lag_is_the_time_from_timestamp_to_commit(chain):
    now = timezone.now()
    timestamp = chain.builder.blocks[1].header.timestamp
    for number, late in ((2, 3.0), (2, 5.0)):
        at = datetime.fromtimestamp(timestamp + late, UTC)
        add_timing(chain.network, number, at)
    _, lag = import_charts(chain.network, now)
    figures = [entry.figure.split()[0] for entry in lag.legend]
    assert figures == ["4", "5"]


def test_the_page_is_quick_among_many_rows(chain, boss):
    """The queries use indexes, and the number of decoded headers is limited."""
    now = timezone.now()
    other = make_network("other")
    add_statuses(chain.network, add_upstreams(chain.network), now)
    add_timings(chain.network, now, 20_000)
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO nodeapi_importtiming (network_id, number, at, fetch_ms,"
            " execute_ms, commit_ms, transactions, gas_used)"
            " SELECT %s, n, now() - n * interval '1 s', 1, 1, 1, 1, 1"
            " FROM generate_series(1, 80000) AS n",
            [other.pk],
        )
        cursor.execute(
            "INSERT INTO nodeapi_quarantinedblock (network_id, hash, number, reason)"
            " SELECT %s, sha256(n::text::bytea), n, 'invalid'"
            " FROM generate_series(1, 20000) AS n",
            [other.pk],
        )
        cursor.execute("ANALYZE")
    with CaptureQueriesContext(connection) as queries:
        text(boss.get(status_path(chain.network)))
    assert len(queries) < 25
    samples = next(q["sql"] for q in queries if "block.header" in q["sql"])
    with connection.cursor() as cursor:
        cursor.execute(samples)
        assert 0 < len(cursor.fetchall()) <= 2 * MAX_SAMPLES
        for query in queries:
            sql = query["sql"]
            if "nodeapi_" not in sql:
                continue
            cursor.execute(f"EXPLAIN {sql}")
            plan = "\n".join(row for (row,) in cursor.fetchall())
            for table in ("importtiming", "quarantinedblock"):
                assert f"Seq Scan on nodeapi_{table}" not in plan, plan


def test_progress_of_a_network_that_is_preparing(
    chain: FollowedChain, boss: Client
) -> None:
    network = chain.network
    path = f"/admin/networks/network/{network.pk}/status/"
    assert "Preparing:" not in text(boss.get(path))

    def shown(**fields: int | None) -> str:
        Network.objects.filter(pk=network.pk).update(is_preparing=True, **fields)
        page = text(boss.get(path))
        found = re.search(r"Preparing: (.*)\.<", page)
        assert found is not None, page
        assert found[1] in text(boss.get("/admin/networks/network/"))
        return found[1]

    now = timezone.now()
    FollowerStatus.objects.create(
        network=network,
        process_started_at=now - timedelta(seconds=10),
        updated_at=now,
        best_number=723,
        best_hash=b"",
        starting_number=0,
    )
    assert shown() == "block 3 of 723, 0.3 blocks per second, 40 min left"
    assert shown(head_number=0, checkpoint_number=1000, oldest_number=900) == (
        "101 of 256 blocks up to the checkpoint are stored"
    )
