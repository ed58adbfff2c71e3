"""Blocks with timestamps up to 2**64 - 1: import, methods and pages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from django.test import Client

from evm.errors import InvalidBlock
from evm.hexadecimal import to_hex
from keys.models import User
from nodeapi.models import Block
from samples.builder import ChainBuilder
from samples.schedules import fork_genesis
from samples.signers import Signer
from tests.support import chains, web
from tests.support.live import Live, live_service

pytestmark = pytest.mark.django_db(transaction=True)

ALICE = Signer("alice")
CLOCK = b"\x0c" * 20
CLOCK_CODE = "42435560006000a000"
"""Stores TIMESTAMP in the slot with the block's number, and logs nothing."""

GENESIS_TIME = 2**63
BLOCK_TIMES = (2**63 + 12, 2**64 - 1)
CANCUN_TIME = 2**64 - 1
"""The second block is the first of its fork."""


def genesis() -> dict[str, Any]:
    clock = {"balance": "0x0", "code": f"0x{CLOCK_CODE}"}
    made = fork_genesis("shanghai", ALICE, **{to_hex(CLOCK): clock})
    made["config"]["cancunTime"] = CANCUN_TIME
    return {**made, "timestamp": hex(GENESIS_TIME)}


def build() -> ChainBuilder:
    chain = ChainBuilder(genesis())
    for time in BLOCK_TIMES:
        chain.send(ALICE, CLOCK)
        chain.block(timestamp=time)
    return chain


@pytest.fixture
def live(transactional_db: None) -> Iterator[Live]:
    with live_service() as live:
        yield live


def test_late_blocks_are_imported_and_read_in_every_way(live: Live) -> None:
    chain = build()
    headers = [chain.genesis.header, *(block.header for block in chain.blocks)]
    assert [header.blob_gas_used is None for header in headers] == [True, True, False]
    chains.import_blocks("late", genesis(), chain.blocks)
    assert chains.audit_all("late") == 3

    with live.api("late", live.new_key(may_trace=True)) as api:
        for header in headers:
            for full in (False, True):
                found = api.result("eth_getBlockByHash", to_hex(header.hash), full)
                assert found["timestamp"] == hex(header.timestamp)
        for block in chain.blocks:
            header, (transaction,) = block.header, block.transactions
            slot, when = hex(header.number), hex(header.timestamp)
            stored = api.result("eth_getStorageAt", to_hex(CLOCK), slot, "latest")
            assert int(stored, 16) == header.timestamp
            receipt = api.result("eth_getTransactionReceipt", to_hex(transaction.hash))
            assert receipt["logs"][0]["blockTimestamp"] == when
            traced = api.result("debug_traceTransaction", to_hex(transaction.hash), {})
            after_timestamp = traced["structLogs"][1]
            assert after_timestamp["stack"] == [when]
    ready = web.get(f"{live.base_url}/readyz").json()
    assert ready["networks"]["late"] == {"head": 2, "head_age_seconds": 0.0}

    client = Client()
    client.force_login(User.objects.create_superuser("staff@example.org"))
    for block in chain.blocks:
        header, (transaction,) = block.header, block.transactions
        for path in (f"block/{to_hex(header.hash)}", f"tx/{to_hex(transaction.hash)}"):
            page = client.get(f"/explore/late/{path}")
            assert page.status_code == 200
            assert f"second {header.timestamp:,}" in page.content.decode()
        row = Block.objects.get(hash=header.hash)
        page = client.get(f"/admin/nodeapi/block/{row.pk}/change/")
        assert str(header.timestamp) in page.content.decode()


def test_no_block_follows_the_last_second() -> None:
    chain = build()
    last = chain.blocks[-1]
    header = replace(last.header, number=3, parent_hash=last.header.hash)
    with pytest.raises(InvalidBlock, match=f"{2**64 - 1} is not after"):
        chains.import_blocks(
            "late", genesis(), [*chain.blocks, replace(last, header=header)]
        )
