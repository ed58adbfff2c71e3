"""Blocks of Amsterdam that geth 1.17.10 made: its answers, and the blocks it rejects."""

from __future__ import annotations

import re
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


TEXTS = {
    "block access list hash of another list": "block access list hash: {local_remote}",
    "empty block access list hash": "block access list hash: {local_remote}",
    "no slot number (22 fields)": "a header must be a list of 15, 16, 17, 20, 21 or 23 "
    "fields",
    "neither list hash nor slot number (21 fields)": "block access list hash: amsterdam "
    "lacks this header field",
    "Amsterdam fields before the fork": "block access list hash: bpo2 does not know this "
    "header field",
    "header gas used is the cumulative gas of receipts": "gas used: {local_remote}",
    "requests hash without builder requests": "requests hash: {local_remote}",
    "state root": "state root: {local_remote}",
    "receipts root": "receipts root: {local_remote}",
    "one trailing field more in the header (24 fields)": "a fork with 24 header fields",
    "valid block, list attached but altered": "block access list hash: {local_remote}",
    "valid block, list attached": "",
    "valid block, no list attached": "",
}
"""The text of each rejection, with the values that geth's text names."""


@pytest.mark.parametrize("name", TEXTS)
def test_altered_blocks_are_rejected_with_the_values_of_geths_text(
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
    assert TEXTS[name].format(local_remote=values_of(altered["geth"])) in str(
        caught.value
    )
    assert Network.objects.get().head_number == number - 1


def values_of(text: str) -> str:
    """Return the values in a text of geth as our texts have them."""
    values = dict(re.findall(r"(local|computed|remote): (\w+)", text))
    shown = {
        name: f"0x{value}" if len(value) == 64 else value
        for name, value in values.items()
    }
    local = shown.get("local") or shown.get("computed")
    return f"expected {local}, got {shown.get('remote')}"


def test_every_altered_block_is_imported() -> None:
    assert [each["name"] for each in amsterdam.rejected()] == list(TEXTS)


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
