"""testing_buildBlockV1: blocks on the head, from given or pooled transactions."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import pytest

from evm.blocks import Withdrawal
from evm.building import next_gas_limit
from evm.hexadecimal import to_hex
from evm.signatures import keccak
from evm.transactions import GAS_PER_BLOB
from nodeapi.models import PooledTransaction
from samples.builder import ChainBuilder
from samples.schedules import fork_genesis
from samples.signers import Signer
from tests.nodeapi.sending.cases import COMMITMENT, GENERATOR, ONES, network_form
from tests.support import chains
from tests.support.live import Api, Live, live_service, request
from tests.support.waiting import wait_until

BUILD = "testing_buildBlockV1"
ALICE, BOB, POOR = Signer("alice"), Signer("bob"), Signer("poor")


def genesis(fork: str) -> dict[str, Any]:
    """Return a genesis.json with a fork from block 0 on."""
    return fork_genesis(fork, ALICE, BOB, chain_id=1337)


GENESIS = genesis("osaka")
ONE = b"\1" * 48
COINBASE, RANDAO, BEACON = b"\xc0" * 20, b"\xaa" * 32, b"\xbb" * 32
GWEI = 10**9

_numbers = itertools.count()


@pytest.fixture(scope="module")
def live(module_db: None) -> Iterator[Live]:
    """Serve the networks of these tests, each of which has its own."""
    with live_service(env={"NODEAPI_TESTING_METHODS": "on"}) as live:
        yield live


@pytest.fixture
def slug() -> str:
    return f"files-{next(_numbers)}"


@pytest.fixture
def blocks(module_db: None, slug: str) -> ChainBuilder:
    builder = ChainBuilder(GENESIS)
    builder.send(ALICE, BOB.address, value=1)
    builder.block()
    chains.import_blocks(slug, GENESIS, builder.blocks)
    return builder


@pytest.fixture
def api(live: Live, slug: str, blocks: ChainBuilder) -> Iterator[Api]:
    with live.api(slug) as api:
        wait_until(lambda: api.send(request("eth_blockNumber")).status_code == 200)
        yield api


def attributes(blocks: ChainBuilder, **changes: Any) -> dict[str, Any]:
    return {
        "timestamp": hex(blocks.head.timestamp + 12),
        "prevRandao": to_hex(RANDAO),
        "suggestedFeeRecipient": to_hex(COINBASE),
        "parentBeaconBlockRoot": to_hex(BEACON),
        "withdrawals": [],
        **changes,
    }


def test_block_is_the_one_that_a_chain_has_and_can_be_imported(api, slug, blocks):
    parent = blocks.head
    given = [
        blocks.send(ALICE, BOB.address, value=5),
        blocks.send(BOB, ALICE.address, value=7, type=0, gas_price=3 * GWEI),
        blocks.send(ALICE, b"", b"\x60\x01\x60\x00\x55", gas=200_000),
    ]
    withdrawal = {
        **{"index": "0x1", "validatorIndex": "0x2", "amount": "0x3"},
        "address": to_hex(POOR.address),
    }
    found = api.result(
        BUILD,
        to_hex(parent.hash),
        attributes(blocks, withdrawals=[withdrawal]),
        [to_hex(each.raw) for each in given],
        "0x6869",
    )
    block = blocks.block(
        timestamp=parent.timestamp + 12,
        coinbase=COINBASE,
        extra_data=b"hi",
        gas_limit=next_gas_limit(parent.gas_limit),
        mix_hash=RANDAO,
        withdrawals=[Withdrawal(1, 2, POOR.address, 3)],
        parent_beacon_root=BEACON,
    )
    payload = found["executionPayload"]
    assert payload["blockHash"] == to_hex(block.header.hash)
    assert payload["withdrawals"] == [withdrawal]
    base_fee = block.header.base_fee_per_gas
    tips = [
        min(each.max_priority_fee_per_gas, each.max_fee_per_gas - base_fee)
        for each in given
    ]
    used = [receipt.gas_used for receipt in blocks.outcomes[-1].receipts]
    fees = sum(gas * tip for gas, tip in zip(used, tips, strict=True))
    assert found["blockValue"] == hex(fees)
    assert api.result("eth_blockNumber") == "0x1"
    chains.import_blocks(slug, GENESIS, [block])


def test_block_of_amsterdam_has_the_given_slot_and_its_access_list(live, module_db):
    start = genesis("amsterdam")
    builder = ChainBuilder(start)
    builder.block()
    chains.import_blocks("amsterdam", start, builder.blocks)
    parent, sent = builder.head, builder.send(ALICE, POOR.address, value=5)
    slot, wanted = parent.slot_number + 1, parent.gas_limit - 7
    given = {"slotNumber": hex(slot), "targetGasLimit": hex(wanted)}
    with live.api("amsterdam") as api:
        wait_until(lambda: api.send(request("eth_blockNumber")).status_code == 200)
        found = api.result(
            *(BUILD, to_hex(parent.hash), attributes(builder, **given)),
            [to_hex(sent.raw)],
        )
        error = api.error(BUILD, to_hex(parent.hash), attributes(builder), [])
    assert error == (-32000, "no slot number set post-amsterdam")
    block = builder.block(
        timestamp=parent.timestamp + 12,
        coinbase=COINBASE,
        gas_limit=wanted,
        mix_hash=RANDAO,
        parent_beacon_root=BEACON,
    )
    payload = found["executionPayload"]
    assert payload["blockHash"] == to_hex(block.header.hash)
    assert payload["slotNumber"] == hex(slot)
    access_list = bytes.fromhex(payload["blockAccessList"][2:])
    assert keccak(access_list) == block.header.block_access_list_hash
    chains.import_blocks("amsterdam", start, [block])


def test_pooled_transactions_are_ordered_by_tip_and_nonce(api, blocks):
    def tip(value: int) -> dict[str, int]:
        return {"max_priority_fee_per_gas": value, "max_fee_per_gas": 50 * GWEI}

    low = blocks.send(ALICE, BOB.address, **tip(GWEI))
    high = blocks.send(ALICE, BOB.address, **tip(9 * GWEI))
    middle = blocks.send(BOB, ALICE.address, **tip(5 * GWEI))
    unpaid = blocks.send(BOB, ALICE.address, **tip(10**6 - 1))
    for each in (high, low, unpaid, middle):
        api.result("eth_sendRawTransaction", to_hex(each.raw))
    for from_pool in ([], [None], [None, "0x"]):
        given = (to_hex(blocks.head.hash), attributes(blocks), *from_pool)
        sent = api.result(BUILD, *given)["executionPayload"]["transactions"]
        assert sent == [to_hex(each.raw) for each in (middle, low, high)]


def blob_transaction(blocks: ChainBuilder, signer: Signer, **changes: Any) -> bytes:
    """Return a transaction with a blob of ones, whose sidecar is of version 0."""
    blob_hash = b"\x01" + sha256(GENERATOR).digest()[1:]
    fields = {
        **{"type": 3, "max_fee_per_blob_gas": GWEI, "gas": 21_000},
        **{"blob_versioned_hashes": [blob_hash], **changes},
    }
    return blocks.send(signer, BOB.address, **fields).raw


@pytest.mark.parametrize("version", [0, 1])
def test_blobs_of_pooled_transactions_are_in_the_bundle(api, blocks, version):
    parent = blocks.head
    raw = blob_transaction(blocks, ALICE)
    sent = network_form(raw, version, [ONES], [GENERATOR])
    api.result("eth_sendRawTransaction", to_hex(sent))
    found = api.result(BUILD, to_hex(parent.hash), attributes(blocks), None)
    block = blocks.block(
        timestamp=parent.timestamp + 12,
        coinbase=COINBASE,
        gas_limit=next_gas_limit(parent.gas_limit),
        mix_hash=RANDAO,
        parent_beacon_root=BEACON,
    )
    payload = found["executionPayload"]
    assert payload["transactions"] == [to_hex(raw)]
    assert payload["blobGasUsed"] == hex(GAS_PER_BLOB)
    assert payload["blockHash"] == to_hex(block.header.hash)
    # From Osaka on, there is a proof for each cell, even if the sidecar had one per blob.
    assert found["blobsBundle"] == {
        "commitments": [to_hex(GENERATOR)],
        "proofs": [to_hex(COMMITMENT)] * 128,
        "blobs": [to_hex(ONES)],
    }


def test_pooled_blob_transactions_of_former_versions_are_left_out(api, blocks):
    raw = blob_transaction(blocks, ALICE)
    sent = network_form(raw, 1, [ONES], [GENERATOR])
    api.result("eth_sendRawTransaction", to_hex(sent))
    PooledTransaction.objects.update(network_form=b"")
    other = blocks.send(BOB, ALICE.address, value=7)
    api.result("eth_sendRawTransaction", to_hex(other.raw))
    found = api.result(BUILD, to_hex(blocks.head.hash), attributes(blocks), None)
    assert found["executionPayload"]["transactions"] == [to_hex(other.raw)]


def test_blobs_of_given_transactions_are_in_the_bundle_and_limited(api, blocks):
    parent, limit = to_hex(blocks.head.hash), 9
    plain = [blob_transaction(blocks, ALICE) for _ in range(limit + 1)]
    given = [to_hex(network_form(raw, 0, [ONES], [GENERATOR], [ONE])) for raw in plain]
    found = api.result(BUILD, parent, attributes(blocks), given[:limit])
    assert found["executionPayload"]["transactions"] == list(map(to_hex, plain[:limit]))
    assert found["executionPayload"]["blobGasUsed"] == hex(limit * GAS_PER_BLOB)
    # The sidecars of given transactions are neither verified nor changed.
    assert found["blobsBundle"]["proofs"] == [to_hex(ONE)] * limit
    error = api.error(BUILD, parent, attributes(blocks), given)
    assert error == (-32000, "max data blobs reached")
    error = api.error(BUILD, parent, attributes(blocks), [to_hex(plain[0])])
    assert error == (-32000, "missing sidecar in blob transaction")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"timestamp": "0x1"}, "invalid timestamp, parent {parent} given 1"),
        ({"parentBeaconBlockRoot": None}, "parent beacon block root is missing"),
    ],
)
def test_impossible_attributes_are_errors(api, blocks, changes, message):
    error = api.error(
        BUILD, to_hex(blocks.head.hash), attributes(blocks, **changes), []
    )
    assert error == (-32000, message.format(parent=blocks.head.timestamp))


def test_wrong_arguments_are_errors(api, blocks):
    parent = to_hex(blocks.head.hash)
    error = api.error(BUILD, to_hex(blocks.head.parent_hash), attributes(blocks), [])
    assert error == (-32000, "parentHash is not current head")
    code, message = api.error(BUILD, parent, {}, [])
    assert code == -32602
    assert message == (
        "invalid argument 1: missing required field 'timestamp' for PayloadAttributes"
    )


def test_invalid_transaction_is_an_error_with_geths_text(api, blocks):
    parent, asked = to_hex(blocks.head.hash), attributes(blocks)

    def refusal(signer: Signer, **options: Any) -> str:
        raw = blocks.fork().send(signer, BOB.address, **options).raw
        code, message = api.error(BUILD, parent, asked, [to_hex(raw)])
        assert code == -32000
        return message

    assert refusal(ALICE, nonce=0).startswith("nonce too low: address 0x")
    assert refusal(ALICE, nonce=9).endswith("tx: 9 state: 1")
    assert refusal(POOR).startswith("insufficient funds for gas * price + value: ")
    assert refusal(ALICE, gas=20_000) == "intrinsic gas too low: have 20000, want 21000"
    assert refusal(ALICE, gas=2**24 + 1) == (
        "transaction gas limit too high (cap: 16777216, tx: 16777217)"
    )
    assert refusal(ALICE, max_fee_per_gas=1, max_priority_fee_per_gas=1).startswith(
        "max fee per gas less than block base fee: "
    )
    assert refusal(ALICE, chain_id=7).startswith("invalid chain id for signer: ")
    error = api.error(BUILD, parent, asked, ["0x01"])
    assert error == (-32000, "invalid transaction 0: typed transaction too short")
