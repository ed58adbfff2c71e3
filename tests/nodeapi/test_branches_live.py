"""A transaction in blocks of two branches, before and after reorganisations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from evm.blocks import Block
from evm.hexadecimal import to_hex
from samples.builder import ChainBuilder
from samples.contracts import contract
from samples.schedules import fork_genesis
from samples.signers import Signer
from tests.support import chains
from tests.support.live import Api, live_service
from tests.support.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

ALICE, BOB = Signer("alice"), Signer("bob")


def genesis() -> dict[str, Any]:
    return fork_genesis("shanghai", ALICE, BOB)


def follow(api: Api, blocks: Sequence[Block]) -> None:
    """Import blocks in another process, and wait until the service has the last one."""
    chains.import_blocks("net", genesis(), blocks)
    head = to_hex(blocks[-1].header.hash)
    wait_until(
        lambda: api.result("eth_getBlockByNumber", "latest", False)["hash"] == head
    )


def check(api: Api, block: Block, index: int) -> None:
    """Check the position of a transaction and of its receipt."""
    name = to_hex(block.transactions[index].hash)
    transaction = api.result("eth_getTransactionByHash", name)
    receipt = api.result("eth_getTransactionReceipt", name)
    for found in (transaction, receipt):
        assert found["blockHash"] == to_hex(block.header.hash)
        assert found["blockNumber"] == hex(block.header.number)
        assert found["transactionIndex"] == hex(index)
    assert transaction["hash"] == receipt["transactionHash"] == name
    receipts = api.result("eth_getBlockReceipts", to_hex(block.header.hash))
    assert receipts[index] == receipt


def test_transaction_is_answered_from_the_canonical_block() -> None:
    start = genesis()
    trunk = ChainBuilder(start)
    slots = trunk.deploy(ALICE, contract("slots").init_code())
    trunk.block()
    left, right = trunk.fork(), trunk.fork()
    left.send(ALICE, slots)
    (on_left,) = [left.block()]
    # The same transaction is in a later block, after another one.
    right.block()
    right.send(BOB, ALICE.address, value=1)
    right.send(ALICE, slots)
    on_right = right.block()
    shared = on_left.transactions[0]
    assert on_right.transactions[1].raw == shared.raw
    alone = to_hex(on_right.transactions[0].hash)

    chains.import_blocks("net", start, left.blocks)
    with live_service() as live, live.api("net") as api:
        check(api, on_left, 0)
        assert api.result("eth_getTransactionByHash", alone) is None
        follow(api, right.blocks[1:])
        check(api, on_right, 0)
        check(api, on_right, 1)
        # The side block can still be read by its own hash.
        side = to_hex(on_left.header.hash)
        (receipt,) = api.result("eth_getBlockReceipts", side)
        assert receipt["blockHash"] == side
        required = {"blockHash": side, "requireCanonical": True}
        assert api.result("eth_getBlockReceipts", required) is None

        left.block()
        left.block()
        follow(api, left.blocks[-2:])
        check(api, on_left, 0)
        for method in ("eth_getTransactionByHash", "eth_getTransactionReceipt"):
            assert api.result(method, alone) is None
