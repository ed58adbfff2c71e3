"""Blocks of Amsterdam that geth 1.17.10 made: its answers, and the blocks it rejects."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from evm.chain_config import ChainConfig
from networks.models import Network
from networks.services import configure_network
from nodeapi.chain.database import importer_connection
from nodeapi.chain.replay import find_origin
from nodeapi.chain.sources import BlockFile
from tests.conformance.test_other_forks import is_alike, surveyed
from tests.golden.differences import DIFFERENCES
from tests.golden.recording import Call
from tests.golden.test_golden import difference
from tests.support import amsterdam, chains
from tests.support.live import Api, live_service, request

METHODS = (
    *("eth_chainId", "eth_config", "eth_getBlockByNumber", "eth_getHeaderByNumber"),
    *("eth_getBlockReceipts", "eth_getTransactionByHash", "eth_getTransactionReceipt"),
    *("eth_getLogs", "eth_getProof", "eth_feeHistory", "debug_getRawBlock"),
    *("debug_getRawHeader", "debug_getRawReceipts", "debug_intermediateRoots"),
    *("debug_traceBlockByHash", "debug_traceBlockByNumber", "debug_traceTransaction"),
    *("debug_traceCall", "eth_call", "eth_createAccessList", "eth_estimateGas"),
    "eth_simulateV1",
)
SHOWN = 5
"""Wrong answers that a failure shows."""


@pytest.fixture(scope="module")
def api(module_db: None) -> Iterator[Api]:
    with BlockFile(amsterdam.chain_file()).open() as blocks:
        chains.import_blocks("amsterdam", amsterdam.genesis(), blocks)
    network = Network.objects.get(slug="amsterdam")
    assert network.head_number == 34
    configure_network(network=network, emit_total_difficulty=False)
    with live_service() as live, live.api(key=live.new_key(may_trace=True)) as api:
        yield api


@pytest.mark.parametrize("method", METHODS)
def test_answers_are_geths(api: Api, method: str) -> None:
    wrong = []
    asked = amsterdam.answers()[method]
    for number, expected in enumerate(asked):
        call = Call("amsterdam", method, expected.pop("params"))
        for each in DIFFERENCES:
            expected = each.change(call, expected, amsterdam.answers)
        found = api.send(request(method, *call.params)).json()
        answer = {key: found[key] for key in ("result", "error") if key in found}
        if answer != expected:
            wrong.append((number, difference(answer, expected)))
    assert not wrong, f"{len(wrong)} of {len(asked)} differ: {wrong[:SHOWN]}"


def test_all_recorded_methods_are_asked() -> None:
    assert amsterdam.answers().keys() == set(METHODS)


FIELDS = {
    "block access list hash of another list": "block access list hash",
    "empty block access list hash": "block access list hash",
    "no slot number (22 fields)": "slot number",
    "neither list hash nor slot number (21 fields)": "block access list hash",
    "Amsterdam fields before the fork": "block access list hash",
    "header gas used is the cumulative gas of receipts": "gas used",
    "requests hash without builder requests": "requests hash",
    "state root": "state root",
    "receipts root": "receipts root",
    "one trailing field more in the header (24 fields)": "",
    "valid block, list attached but altered": "block access list hash",
    "valid block, list attached": "",
    "valid block, no list attached": "",
}
"""The field that each rejection names, before geth's text."""


@pytest.mark.parametrize("name", FIELDS)
def test_altered_blocks_are_rejected_with_geths_text(
    transactional_db: None, tmp_path: Path, name: str
) -> None:
    (altered,) = (each for each in amsterdam.rejected() if each["name"] == name)
    number = altered["block"]
    with BlockFile(amsterdam.chain_file()).open() as blocks:
        before = [raw for raw, _ in zip(blocks, range(number - 1), strict=False)]
    chains.import_blocks("net", amsterdam.genesis(), before)
    path = tmp_path / "block.rlp"
    path.write_bytes(bytes.fromhex(altered["raw"][2:]))
    if altered["geth"] == "accepted":
        call_command("import_chain", path, network="net")
        assert Network.objects.get().head_number == number
        return
    with pytest.raises(CommandError) as caught:
        call_command("import_chain", path, network="net")
    message = str(caught.value)
    if "too many elements" in altered["geth"]:
        # It may be the header of a later fork, so that only this version can't read it.
        assert message.endswith(
            "needs a fork with 24 header fields, which is not supported"
        )
    else:
        text = altered["geth"].removeprefix(f"invalid block {number}: ")
        # The end is an error of geth's database, and there was none.
        text = text.removesuffix(" dberr: %!w(<nil>)")
        assert message.startswith(f"block {number} (0x")
        assert message.endswith(f"): {FIELDS[name]}: {text}")
    assert Network.objects.get().head_number == number - 1


def test_every_altered_block_is_imported() -> None:
    assert [each["name"] for each in amsterdam.rejected()] == list(FIELDS)


def test_transactions_by_amsterdams_rules_and_by_osakas(api: Api) -> None:
    config = ChainConfig.from_genesis(amsterdam.genesis())
    changed = 0
    with importer_connection() as connection:
        network = chains.network_id(connection, "amsterdam")
        hashes = connection.execute(
            "SELECT hash FROM nodeapi_block WHERE network_id = %s AND number >= 3"
            " AND transaction_count > 0",
            (network,),
            binary=True,
        ).fetchall()
        for (block_hash,) in hashes:
            origin = find_origin(connection, network, config, block_hash)
            assert is_alike(surveyed(origin, "amsterdam"))
            changed += not is_alike(surveyed(origin, "osaka"))
    assert changed > len(hashes) / 2
