"""Block access lists before and from Amsterdam on, and transactions that are filled.

`vectors/filled_transactions/` has geth 1.17.10's answers after the same blocks.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evm import rlp
from evm.blocks import decode_block
from evm.signatures import keccak
from nodeapi.chain.sources import BlockFile
from nodeapi.models import Block, BlockAccessList
from nodeapi.sending.decoding import decode_submission
from nodeapi.upstreams.client import UpstreamClient
from tests.nodeapi.sending.cases import GENERATOR, ONES
from tests.support import amsterdam, chains
from tests.support.live import Api, Live, live_service, request
from tests.support.proving import ProvingChecks

HEAD = 34
VECTORS = Path(__file__).parents[1] / "vectors" / "filled_transactions" / "geth.jsonl"


@pytest.fixture(scope="module")
def live(module_db: None) -> Iterator[Live]:
    with BlockFile(amsterdam.chain_file()).open() as blocks:
        chains.import_blocks("amsterdam", amsterdam.genesis(), blocks)
    BlockAccessList.objects.filter(block__number__in=[1, 6]).delete()
    with live_service() as live:
        yield live


@pytest.fixture(scope="module")
def api(live: Live) -> Iterator[Api]:
    with live.api(key=live.new_key()) as api:
        yield api


def ask(api: Api, method: str, *params: Any) -> Any:
    return api.send(request(method, *params)).json()


def encoded(accounts: list[dict[str, Any]]) -> bytes:
    """Return the RLP of a list that is given as JSON."""

    def number(text: str) -> bytes:
        return rlp.encode_int(int(text, 16))

    def changes(found: list[dict[str, str]], name: str) -> list[rlp.Item]:
        return [[number(one["blockAccessIndex"]), number(one[name])] for one in found]

    return rlp.encode(
        [
            [
                bytes.fromhex(one["address"][2:]),
                [
                    [number(slot["slot"]), changes(slot["slotChanges"], "postValue")]
                    for slot in one["storageChanges"]
                ],
                list(map(number, one["storageReads"])),
                changes(one["balanceChanges"], "postBalance"),
                changes(one["nonceChanges"], "postNonce"),
                [
                    [
                        number(each["blockAccessIndex"]),
                        bytes.fromhex(each["newCode"][2:]),
                    ]
                    for each in one["codeChanges"]
                ],
            ]
            for one in accounts
        ]
    )


def test_other_nodes_can_execute_blocks_with_what_ours_sends(live: Live) -> None:
    with BlockFile(amsterdam.chain_file()).open() as raw_blocks:
        blocks = list(map(decode_block, raw_blocks))
    url = f"{live.base_url}/v3/{live.new_key(may_trace=True)}"
    traced = (2, 8)

    async def scenario() -> Counter[str]:
        async with UpstreamClient(url) as client:
            checks = ProvingChecks(client, amsterdam.genesis(), blocks)
            for number in (*range(1, 7), *range(8, HEAD + 1, 5)):
                await checks.check(number, has_list=number not in traced)
            return checks.counts

    counts = asyncio.run(scenario())
    assert counts["lists"] == 10
    assert counts["receipts"] > 50
    assert counts["slots of calls"] > 0
    assert {block.header.slot_number is None for block in blocks[:6]} == {True, False}


def test_lists_have_the_hash_of_the_header(api: Api) -> None:
    for block in amsterdam.blocks()[2:]:
        name = hex(block["number"])
        accounts = ask(api, "eth_getBlockAccessList", name)["result"]
        raw = ask(api, "debug_getRawBlockAccessList", block["hash"])["result"]
        described = ask(api, "portcullis_getBlockAccessList", name)["result"]
        header = ask(api, "eth_getHeaderByNumber", name)["result"]
        assert raw == block["blockAccessList"], block["title"]
        assert f"0x{encoded(accounts).hex()}" == raw
        assert described == {
            "computed": False,
            "list": accounts,
            "hash": header["blockAccessListHash"],
        }


@pytest.mark.parametrize("number", [0, 1, 2])
def test_earlier_blocks_have_computed_lists(api: Api, number: int) -> None:
    found = ask(api, "portcullis_getBlockAccessList", hex(number))["result"]
    assert found["computed"] is True
    raw = encoded(found["list"])
    assert found["hash"] == f"0x{keccak(raw).hex()}"
    assert bool(found["list"]) == bool(number)
    for method in ("eth_getBlockAccessList", "debug_getRawBlockAccessList"):
        error = ask(api, method, hex(number))["error"]
        assert (error["code"], error["data"]["reason"]) == (4445, "no_access_list")


@pytest.mark.parametrize(
    "method",
    [
        "eth_getBlockAccessList",
        "debug_getRawBlockAccessList",
        "portcullis_getBlockAccessList",
    ],
)
def test_block_parameters(api: Api, method: str) -> None:
    head = f"0x{bytes(Block.objects.get(number=HEAD).hash).hex()}"
    expected = ask(api, method, hex(HEAD))["result"]
    for name in ("latest", head, {"blockHash": head, "requireCanonical": True}):
        assert ask(api, method, name)["result"] == expected
    assert ask(api, method, hex(HEAD + 1))["result"] is None
    assert ask(api, method, f"0x{'12' * 32}")["result"] is None


def test_transactions_are_filled_as_geth_fills_them(api: Api) -> None:
    wrong = []
    for line in VECTORS.read_text().splitlines():
        expected = json.loads(line)
        call = expected.pop("call")
        answer = ask(api, "eth_fillTransaction", call)
        found = {key: answer[key] for key in ("result", "error") if key in answer}
        if found != expected:
            wrong.append((call, found, expected))
    assert not wrong


def test_blobs_get_a_sidecar(api: Api) -> None:
    call = {"to": f"0x{'12' * 20}", "gas": "0x5208", "blobs": [f"0x{ONES.hex()}"]}
    found = ask(api, "eth_fillTransaction", call)["result"]
    assert found["tx"]["commitments"] == [f"0x{GENERATOR.hex()}"]
    submission = decode_submission(bytes.fromhex(found["raw"][2:]))
    assert submission.sidecar is not None
    assert submission.sidecar.version == 1
    assert f"0x{submission.transaction.hash.hex()}" == found["tx"]["hash"]
