"""Changes of networks under a service of two processes."""

from __future__ import annotations

from typing import Any

import pytest

from networks.models import Network
from networks.services import configure_network
from tests.support import chains, sample
from tests.support.live import Api, live_service, request
from tests.support.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

NUMBER = request("eth_blockNumber")
BLOCK = request("eth_getBlockByNumber", "0x1", True)


def wait_for(api: Api, message: Any, part: str, *, is_there: bool = True) -> None:
    """Wait until a part of the response of the host's network appears or disappears."""
    wait_until(lambda: (part in api.send(message, host="second.test").text) is is_there)


def test_network_appears_and_changes_in_every_process() -> None:
    blocks = sample.raw_blocks()[:3]
    chains.import_blocks("first", sample.genesis(), blocks[:1])
    with live_service(workers=2) as live, live.each_worker("", live.new_key()) as apis:
        chains.import_blocks("second", sample.genesis(), blocks)
        network = Network.objects.get(slug="second")
        for name, number in (("second.test", "0x3"), ("other.test", "0x1")):
            configure_network(network=network, host_names=[name])
            for api in apis:
                wait_for(api, NUMBER, f'"result":"{number}"')
                assert api.result("eth_blockNumber") == "0x1"
        configure_network(network=network, host_names=["second.test"])
        for emits in (True, False, True):
            configure_network(network=network, emit_total_difficulty=emits)
            for api in apis:
                wait_for(api, NUMBER, '"result":"0x3"')
                wait_for(api, BLOCK, "totalDifficulty", is_there=emits)
