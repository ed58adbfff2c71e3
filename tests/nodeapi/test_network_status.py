"""`manage.py network_status` and the states in `list_networks`."""

from __future__ import annotations

import io
import json
from concurrent.futures import Future
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from networks.models import Network
from networks.services import add_upstream, configure_network
from nodeapi.models import FollowerStatus, UpstreamStatus
from nodeapi.status.following import SILENT, Following, following
from tests.support.rows import add_block, hash_of, make_network, set_head

pytestmark = pytest.mark.django_db(transaction=True)

URL = "http://node.example/SECRET"


@pytest.fixture
def network() -> Network:
    """Create a network with head 2 that follows an upstream."""
    made = make_network("dev")
    for number, name in enumerate(("zero", "one", "two")):
        add_block(made, name, number)
    set_head(made, "two", 2, safe_hash=hash_of("one"), finalized_hash=hash_of("zero"))
    add_upstream(network=made, url=URL, headers={"X-Key": "SECRET"}, note="rack 1")
    made.refresh_from_db()
    return made


def report(network: Network, **fields: Any) -> FollowerStatus:
    """Write a follower's status."""
    now = timezone.now()
    given = {"process_started_at": now, "updated_at": now, "best_number": 2, **fields}
    return FollowerStatus.objects.update_or_create(network=network, defaults=given)[0]


def output(*arguments: str) -> str:
    stdout = io.StringIO()
    call_command(*arguments, stdout=stdout)
    return stdout.getvalue()


def test_what_a_follower_does(network: Network) -> None:
    assert following(network) == Following.STOPPED
    report(network)
    assert following(network) == Following.FOLLOWING
    report(network, best_number=2 + 3)
    assert following(network) == Following.CATCHING_UP
    report(network, alarm="the finalized block was reverted")
    assert following(network) == Following.ALARM
    status = report(network, alarm="")
    assert following(network, status.updated_at + SILENT) == Following.FOLLOWING
    later = status.updated_at + SILENT + timedelta(milliseconds=1)
    assert following(network, later) == Following.STOPPED
    configure_network(
        network=network, upstreams_enabled={network.upstreams.get().pk: False}
    )
    assert following(network) == Following.NO_UPSTREAMS


def test_state_as_json(network: Network) -> None:
    now = timezone.now()
    report(network, best_number=9, best_hash=hash_of("nine"), alarm="stuck")
    UpstreamStatus.objects.create(
        upstream=network.upstreams.get(),
        head_number=9,
        head_hash=hash_of("nine"),
        client_version="Geth/v1.17.2",
        latency_ms=1.5,
        requests=10,
        errors=1,
        last_error="HTTP status 429",
        last_error_at=now,
        checked_at=now,
    )
    add_upstream(network=network, url="ws://other.example")
    text = output("network_status", "dev", "--json")
    assert "SECRET" not in text
    state = json.loads(text)
    assert (state["network"], state["following"]) == ("dev", "alarm")
    blocks = {tag: state[tag]["number"] for tag in ("head", "safe", "finalized")}
    assert blocks == {"head": 2, "safe": 1, "finalized": 0}
    assert state["head"] == {
        "number": 2,
        "hash": "0x" + hash_of("two").hex(),
        "timestamp": 2,
    }
    assert state["follower"]["best_number"] == 9
    assert state["follower"]["blocks_behind"] == 7
    assert state["follower"]["alarm"] == "stuck"
    first, second = state["upstreams"]
    assert (first["url"], first["note"]) == ("http://node.example/…", "rack 1")
    assert first["status"]["head_number"] == 9
    assert first["status"]["last_error"] == "HTTP status 429"
    assert first["status"]["backing_off_until"] is None
    assert (second["url"], second["status"]) == ("ws://other.example", None)


def test_state_in_lines(network: Network) -> None:
    assert "dev: Dev, chain id" in output("network_status", "dev")
    Network.objects.update(
        genesis={"config": {"chainId": 1, "futureTime": 2_000_000_000}}
    )
    report(network, best_number=9, alarm="stuck")
    UpstreamStatus.objects.create(
        upstream=network.upstreams.get(),
        head_number=9,
        requests=10,
        errors=1,
        fork_warnings="one\ntwo",
    )
    second = add_upstream(network=network, url="ws://other.example")
    configure_network(network=network, upstreams_enabled={second.pk: False})
    text = output("network_status", "dev")
    assert "SECRET" not in text
    for part in (
        "alarm\n",
        f"head       2  0x{hash_of('two').hex()}",
        f"finalized  0  0x{hash_of('zero').hex()}",
        "7 blocks behind",
        f"fork       upstream {network.upstreams.first().pk}: two",
        "alarm      stuck",
        "future at 2033-05-18 03:33:20 UTC is not supported",
        f"{second.pk}  ws://other.example disabled",
        "(rack 1) head 9, 1 of 10 requests failed",
    ):
        assert part in text


def test_distance_is_unknown_while_no_upstream_is_usable(network: Network) -> None:
    report(network, best_number=None, alarm="no upstream is usable")
    assert "unknown blocks behind" in output("network_status", "dev")
    state = json.loads(output("network_status", "dev", "--json"))
    assert state["follower"]["blocks_behind"] is None


def test_network_without_blocks_has_a_state() -> None:
    make_network("bare")
    state = json.loads(output("network_status", "bare", "--json"))
    assert state["head"] is state["safe"] is state["follower"] is None
    assert state["following"] == "no upstreams"
    assert "bare: Bare" in output("network_status", "bare")


def test_waiting_ends_at_the_block_or_at_the_time_limit(network: Network) -> None:
    assert json.loads(output("network_status", "dev", "--json", "--wait", "2"))
    with pytest.raises(CommandError) as error:
        output("network_status", "dev", "--wait", "3", "--timeout", "0.3")
    assert str(error.value) == "dev: the head is 2 after 0.3 s, not 3"


def test_waiting_sees_a_block_that_comes(network: Network) -> None:
    from concurrent.futures import ThreadPoolExecutor

    from django.db import connection

    def wait() -> str:
        try:
            return output("network_status", "dev", "--wait", "3", "--json")
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as threads:
        waiting: Future[str] = threads.submit(wait)
        add_block(network, "three", 3)
        set_head(network, "three", 3)
        assert json.loads(waiting.result(60))["head"]["number"] == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gamma"], "there is no network 'gamma'"),
        (["dev", "--wait", "soon"], "invalid int value"),
        (["dev", "--timeout", "long"], "invalid float value"),
    ],
)
def test_mistakes_are_reported_in_one_line(
    network: Network, arguments: list[str], message: str
) -> None:
    with pytest.raises(CommandError, match=message) as error:
        output("network_status", *arguments)
    assert "\n" not in str(error.value)


def test_list_shows_what_each_follower_does(network: Network) -> None:
    make_network("files")
    report(network)
    _, dev, files = output("list_networks").splitlines()
    assert dev.split()[-3:] == ["1", "following", "visible"]
    assert files.split()[-4:] == ["0", "no", "upstreams", "visible"]


def test_checkpoint_and_oldest_blocks_are_named(network: Network) -> None:
    assert json.loads(output("network_status", "dev", "--json"))["checkpoint"] is None
    Network.objects.update(
        checkpoint_number=9000, checkpoint_hash=hash_of("nine"), oldest_number=700
    )
    state = json.loads(output("network_status", "dev", "--json"))["checkpoint"]
    oldest = {"blocks": 700, "logs": 700, "state": 9000, "traces": 9001}
    block_hash = f"0x{hash_of('nine').hex()}"
    assert state == {
        "number": 9000,
        "hash": block_hash,
        "oldest": oldest,
        "by_proofs": {"state": 700, "traces": 701},
    }
    lines = output("network_status", "dev")
    assert f"checkpoint 9000  {block_hash}" in lines
    assert "oldest     blocks 700, logs 700, state 9000, traces 9001" in lines
    assert "by proofs  state 700, traces 701" in lines
