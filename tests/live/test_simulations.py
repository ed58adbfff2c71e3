"""eth_simulateV1 returns geth's blocks for random payloads after many blocks of a chain."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from evm.rules.forks import AMSTERDAM
from networks.models import Network
from networks.services import configure_network
from tests.golden.chains import CHAINS
from tests.golden.geth import Geth, GethError, running_geth
from tests.live import programs
from tests.live.random_simulations import RandomPayloads
from tests.support import chains
from tests.support.live import Api, live_service

SEED = 20


class Both(NamedTuple):
    """geth and the service, with the same chain."""

    geth: Geth
    api: Api
    blocks: int


@pytest.fixture(scope="module")
def both(
    live_blocks: int, module_db: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Both]:
    try:
        binary = programs.geth()
    except GethError as error:
        pytest.skip(str(error))
    chain = CHAINS["sample"]()
    chains.import_blocks("sample", chain.genesis, chain.raw)
    network = Network.objects.get(slug="sample")
    configure_network(network=network, emit_total_difficulty=False)
    folder: Path = tmp_path_factory.mktemp("geth")
    raw = b"".join(chain.raw)
    env = {"NODEAPI_CALL_TIMEOUT": "60"}
    with (
        running_geth(binary, chain.genesis, raw, folder) as geth,
        live_service(env=env) as live,
        live.api("sample") as api,
    ):
        yield Both(geth, api, len(chain.raw))


def outcome(both: Both, params: list[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return geth's result or error, and ours."""
    answer = both.api.ask("eth_simulateV1", *params)
    ours = {name: answer[name] for name in ("result", "error") if name in answer}
    return both.geth.call("eth_simulateV1", params), ours


def test_random_simulations_are_geths(both: Both, live_blocks: int) -> None:
    choose, payloads = random.Random(SEED), RandomPayloads(SEED, AMSTERDAM)
    kinds: Counter[Any] = Counter()
    for _ in range(live_blocks):
        base = hex(choose.choice([both.blocks, choose.randrange(both.blocks + 1)]))
        params = [payloads.payload(), base]
        theirs, ours = outcome(both, params)
        assert theirs == ours, (json.dumps(params), theirs, ours)
        kinds["result" if "result" in theirs else theirs["error"]["code"]] += 1
    print("outcomes:", dict(kinds))
    assert kinds["result"] > live_blocks / 3
