"""The node's methods as clients read them, single and in batches."""

from __future__ import annotations

from typing import Any

import pytest

from evm.blocks import decode_block
from keys.services import grant_entitlement
from networks.models import Network
from nodeapi.models import StorageVersion
from tests.clients.conftest import Desk
from tests.clients.programs import Answer, Ethers, Program, Viem
from tests.support import sample, web
from tests.support.live import api_key_of, request

BLOCK = decode_block(sample.raw_blocks()[1])
HEADER = BLOCK.header
BLOCK_HASH = "0x" + HEADER.hash.hex()
SLOT = "0x" + "00" * 31 + "01"


@pytest.fixture(scope="module")
def url(desk: Desk) -> str:
    """Return a URL whose key may trace."""
    secret = desk.live.new_key()
    alpha = Network.objects.get(slug="alpha")
    api_key = api_key_of(secret)
    grant_entitlement(api_key=api_key, network=alpha, tracers=["prestateTracer"])
    return f"{desk.live.base_url}/alpha/v3/{secret}"


@pytest.fixture(scope="module")
def account(desk: Desk) -> str:
    """Return an account whose SLOT is not zero."""
    row = StorageVersion.objects.exclude(value=b"").filter(slot=bytes.fromhex(SLOT[2:]))
    return "0x" + bytes(row.latest("block_number").address).hex()


def calls(account: str) -> list[dict[str, Any]]:
    wanted = [
        ("eth_getBlockByHash", BLOCK_HASH, True),
        ("eth_getTransactionByBlockHashAndIndex", BLOCK_HASH, "0x1"),
        ("eth_getStorageAt", account, SLOT, "latest"),
        ("debug_traceBlockByHash", BLOCK_HASH, {"tracer": "prestateTracer"}),
    ]
    return [{**request(*call), "id": number} for number, call in enumerate(wanted)]


def test_results_are_what_the_service_sent(
    desk: Desk, program: Program, url: str, account: str
) -> None:
    wanted = calls(account)
    sent = [Answer(web.post(url, json=call).json()["result"]) for call in wanted]
    assert [program.ask(url, [call], {}) for call in wanted] == [[one] for one in sent]
    if program.batches:
        headers = desk.headers()
        assert program.ask(url, wanted, headers) == sent
        assert [line["calls"] for line in desk.seen(headers)] == [len(wanted)]


def test_viem_decodes_them(desk: Desk, viem: Viem, url: str, account: str) -> None:
    asked = {"blockHash": BLOCK_HASH}
    block = viem.act(url, "getBlock", {**asked, "includeTransactions": True})
    assert block["number"] == f"{HEADER.number}n"
    assert block["gasUsed"] == f"{HEADER.gas_used}n"
    assert [each["hash"] for each in block["transactions"]] == [
        "0x" + each.hash.hex() for each in BLOCK.transactions
    ]
    second = viem.act(url, "getTransaction", {**asked, "index": 1})
    assert second == block["transactions"][1]
    assert second["value"] == f"{BLOCK.transactions[1].value}n"
    word = viem.act(url, "getStorageAt", {"address": account, "slot": SLOT})
    assert int(word, 16) > 0


def test_ethers_decodes_them(
    desk: Desk, ethers: Ethers, url: str, account: str
) -> None:
    block = ethers.act(url, "getBlock", BLOCK_HASH, True)
    assert (block["number"], block["hash"]) == (HEADER.number, BLOCK_HASH)
    assert block["timestamp"] == HEADER.timestamp
    assert block["transactions"] == [
        "0x" + each.hash.hex() for each in BLOCK.transactions
    ]
    second = ethers.act(url, "getTransaction", block["transactions"][1])
    assert second["from"].lower() == "0x" + BLOCK.transactions[1].sender.hex()
    assert int(ethers.act(url, "getStorage", account, SLOT), 16) > 0
