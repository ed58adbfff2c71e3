"""Random blocks of Amsterdam that geth builds have our roots, and geth's traces.

LIVE_SEED chooses the blocks, LIVE_BLOCKS is their number.
"""

from __future__ import annotations

import os
from collections import Counter
from io import BytesIO
from pathlib import Path

import pytest

from evm import rlp
from evm.blocks import decode_block
from networks.models import Network
from networks.services import configure_network
from nodeapi.chain.sources import BlockFile
from tests.differential.cases import Case
from tests.golden.geth import GethError, running_geth
from tests.golden.options import EXECUTED
from tests.live import programs
from tests.live.comparing import Comparison
from tests.live.random_chain import RandomChain, build
from tests.support import chains
from tests.support.live import live_service
from tests.support.random_blocks import FIRST_OF_AMSTERDAM

SEED = int(os.environ.get("LIVE_SEED", "1"))
EXECUTED_EVERY = 4
"""How often a block is traced by tracers for which the service executes it."""
EXECUTED_GAS = 3_000_000
"""Blocks with more gas are not, because geth's JavaScript tracers have 5 seconds."""


@pytest.fixture(scope="module")
def binary() -> str:
    try:
        return programs.geth()
    except GethError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def chain(
    live_blocks: int, binary: str, tmp_path_factory: pytest.TempPathFactory
) -> RandomChain:
    return build(binary, tmp_path_factory.mktemp("builder"), SEED, live_blocks)


def test_every_list_receipt_and_root_is_geths(chain: RandomChain) -> None:
    counted: Counter[str] = Counter()
    case, lists = Case("random", chain.genesis, chain.raw), exported_lists(chain)
    # `executed` compares roots, gas, blooms and hashes with each header.
    for (_, verified), wanted in zip(case.executed(), lists, strict=True):
        if wanted is not None:
            assert verified.outcome.access_list.raw == wanted
            counted["lists"] += 1
        counted["requests"] += len(verified.outcome.requests or ())
        for receipt in verified.outcome.receipts:
            counted["succeeded" if receipt.status else "failed"] += 1
            counted["logs"] += len(receipt.logs)
    print(f"{len(chain.raw)} blocks, refused: {len(chain.refused)}", dict(counted))
    assert counted["lists"] == len(chain.raw) - FIRST_OF_AMSTERDAM + 1
    assert counted["succeeded"] > len(chain.raw)
    assert counted["failed"] > len(chain.raw)


def exported_lists(chain: RandomChain) -> list[bytes | None]:
    """Return the access list of each block after the genesis."""
    blocks = [rlp.list_items(raw) for raw in rlp.read_items(BytesIO(chain.exported))]
    return [parts[4] if len(parts) == 5 else None for parts in blocks[1:]]


def test_exported_blocks_are_imported_with_and_without_lists(
    chain: RandomChain, module_db: None, tmp_path: Path
) -> None:
    file = tmp_path / "exported.rlp"
    file.write_bytes(chain.exported)
    with BlockFile(file).open() as blocks:
        chains.import_blocks("listed", chain.genesis, blocks)
    chains.import_blocks("unlisted", chain.genesis, chain.raw)
    assert chains.rows("listed") == chains.rows("unlisted")
    assert chains.audit_all("listed") == len(chain.raw) + 1
    assert chains.head("listed")[0] == len(chain.raw)


def test_every_response_is_geths(
    chain: RandomChain, binary: str, module_db: None, tmp_path: Path
) -> None:
    chains.import_blocks("random", chain.genesis, chain.raw)
    network = Network.objects.get(slug="random")
    configure_network(network=network, emit_total_difficulty=False)
    raw = b"".join(chain.raw)
    with (
        running_geth(binary, chain.genesis, raw, tmp_path) as geth,
        live_service() as live,
        live.api("random", live.new_key(may_trace=True)) as api,
    ):
        lists = {
            hex(number): wanted
            for number, wanted in enumerate(exported_lists(chain), start=1)
            if wanted is not None
        }
        found = api.results(("debug_getRawBlockAccessList", number) for number in lists)
        assert found == ["0x" + wanted.hex() for wanted in lists.values()]
        comparison = Comparison(api, geth)
        comparison.compare(0, len(chain.raw))
        for block in map(decode_block, chain.raw[::EXECUTED_EVERY]):
            if block.header.gas_used <= EXECUTED_GAS:
                number = hex(block.header.number)
                comparison.compare_calls(
                    [
                        ("debug_traceBlockByNumber", number, options)
                        for options in EXECUTED.values()
                        if "limit" not in options  # see `tests.golden.differences`
                    ]
                )
    print(comparison.summary())
