"""web3.py against the live service, with web3.py's own middleware."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import requests
from aiohttp import ClientResponseError
from hexbytes import HexBytes
from web3 import AsyncWeb3, Web3
from web3.exceptions import (
    BlockNotFound,
    MethodUnavailable,
    TransactionNotFound,
    Web3RPCError,
)
from web3.providers import AsyncHTTPProvider, HTTPProvider

from evm.blocks import Block, decode_block
from nodeapi.models import StorageVersion
from tests.support import copies, sample
from tests.support.live import Live, live_service

BLOCKS = [decode_block(raw) for raw in sample.raw_blocks()]
HEAD = BLOCKS[-1]
UNKNOWN = HexBytes("0x" + "ab" * 32)


@pytest.fixture(scope="module")
def live(module_db: None) -> Iterator[Live]:
    copies.sample_chain()
    with live_service() as live:
        yield live


@pytest.fixture(scope="module")
def url(live: Live) -> str:
    return f"{live.base_url}/v3/{live.new_key()}"


@pytest.fixture(scope="module")
def w3(url: str) -> Iterator[Web3]:
    provider = HTTPProvider(url)
    yield Web3(provider)
    session = provider._request_session_manager.cache_and_return_session(url)
    session.close()


def without_retries(url: str) -> Web3:
    return Web3(HTTPProvider(url, exception_retry_configuration=None))


def check_block(found: Any, block: Block, *, full: bool) -> None:
    header = block.header
    assert found.hash == HexBytes(header.hash)
    assert found.parentHash == HexBytes(header.parent_hash)
    assert (found.number, found.timestamp) == (header.number, header.timestamp)
    assert (found.gasUsed, found.gasLimit) == (header.gas_used, header.gas_limit)
    assert found.difficulty == header.difficulty
    assert found.extraData == HexBytes(header.extra_data)
    assert found.logsBloom == HexBytes(header.logs_bloom)
    assert found.get("baseFeePerGas") == header.base_fee_per_gas
    assert found.get("blobGasUsed") == header.blob_gas_used
    assert Web3.to_bytes(hexstr=found.miner) == header.coinbase
    assert Web3.is_checksum_address(found.miner)
    assert found.uncles == [HexBytes(uncle.hash) for uncle in block.uncles]
    withdrawals = [each.amount for each in found.get("withdrawals", [])]
    assert withdrawals == [each.amount_gwei for each in block.withdrawals or ()]
    hashes = [HexBytes(transaction.hash) for transaction in block.transactions]
    if full:
        assert [each.hash for each in found.transactions] == hashes
        for index, each in enumerate(found.transactions):
            check_transaction(each, block, index)
    else:
        assert found.transactions == hashes


def check_transaction(found: Any, block: Block, index: int) -> None:
    sent = block.transactions[index]
    assert found.hash == HexBytes(sent.hash)
    assert (found.blockHash, found.blockNumber, found.transactionIndex) == (
        HexBytes(block.header.hash),
        block.header.number,
        index,
    )
    assert (found.type, found.nonce, found.gas) == (sent.type, sent.nonce, sent.gas)
    assert (found.value, found.input) == (sent.value, HexBytes(sent.data))
    receiver = Web3.to_bytes(hexstr=found.to) if found.get("to") else b""
    assert receiver == sent.to
    assert len(found.get("accessList", ())) == len(sent.access_list)
    assert len(found.get("authorizationList", ())) == len(sent.authorization_list)
    assert found.get("blobVersionedHashes", []) == [
        HexBytes(each) for each in sent.blob_versioned_hashes
    ]


def test_it_is_connected(w3: Web3) -> None:
    assert w3.is_connected(show_traceback=True)
    assert w3.client_version.startswith("Portcullis/")
    assert w3.eth.chain_id == 202_611
    assert w3.net.version == "202611"
    assert w3.eth.block_number == HEAD.header.number
    assert w3.eth.syncing is False


def test_every_block_by_hash_and_by_number(w3: Web3) -> None:
    for block in BLOCKS:
        full = block.header.number % 2 == 0
        by_hash = w3.eth.get_block(block.header.hash, full)
        by_number = w3.eth.get_block(block.header.number, full)
        assert by_hash == by_number
        check_block(by_hash, block, full=full)


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("tag", ["latest", "safe", "finalized", "pending"])
def test_tags_of_the_head(w3: Web3, tag: Any, full: bool) -> None:
    check_block(w3.eth.get_block(tag, full), HEAD, full=full)


def test_the_earliest_block_is_the_genesis(w3: Web3) -> None:
    found = w3.eth.get_block("earliest", True)
    assert found["number"] == 0
    assert found["hash"] == HexBytes(BLOCKS[0].header.parent_hash)
    assert found["transactions"] == []


def test_transactions_of_every_type(w3: Web3) -> None:
    seen: Counter[int] = Counter()
    for block in BLOCKS:
        for index, transaction in enumerate(block.transactions):
            if seen[transaction.type] == 4:
                continue
            seen[transaction.type] += 1
            found = w3.eth.get_transaction_by_block(block.header.hash, index)
            check_transaction(found, block, index)
    assert sorted(seen.elements()) == [kind for kind in range(5) for _ in range(4)]


def check_receipt(found: Any, block: Block, index: int) -> None:
    sent = block.transactions[index]
    assert found.transactionHash == HexBytes(sent.hash)
    assert (found.blockHash, found.blockNumber, found.transactionIndex) == (
        HexBytes(block.header.hash),
        block.header.number,
        index,
    )
    assert Web3.to_bytes(hexstr=found["from"]) == sent.sender
    assert (found.contractAddress is None) == (found.to is not None)
    assert found.type == sent.type
    assert found.get("blobGasUsed", 0) == sent.blob_gas
    assert (
        found.status in (0, 1) if "status" in found else len(HexBytes(found.root)) == 32
    )
    assert 0 < found.gasUsed <= sent.gas
    assert found.effectiveGasPrice <= sent.max_fee_per_gas
    for log in found.logs:
        assert log.transactionHash == found.transactionHash
        assert Web3.is_checksum_address(log.address)


def test_receipts_of_every_block(w3: Web3) -> None:
    for block in BLOCKS:
        receipts = w3.eth.get_block_receipts(block.header.number)
        assert len(receipts) == len(block.transactions)
        for index, receipt in enumerate(receipts):
            check_receipt(receipt, block, index)
        logs = [log.logIndex for receipt in receipts for log in receipt.logs]
        assert logs == list(range(len(logs)))
        if block.header.slot_number is None:  # else, it is the larger one of two sums
            used = sum(receipt.gasUsed for receipt in receipts)
            assert used == block.header.gas_used


def test_transactions_by_hash_with_their_receipts(w3: Web3) -> None:
    for block in BLOCKS[:: len(BLOCKS) // 20]:
        number = block.header.number
        assert w3.eth.get_block_transaction_count(number) == len(block.transactions)
        for index, transaction in enumerate(block.transactions[:5]):
            found = w3.eth.get_transaction(transaction.hash)
            check_transaction(found, block, index)
            assert w3.eth.get_transaction_by_block(number, index) == found
            receipt = w3.eth.get_transaction_receipt(transaction.hash)
            check_receipt(receipt, block, index)


def slots() -> list[tuple[bytes, int, int, int]]:
    """Return address, slot, block and value of some writes, no slot twice."""
    newest = StorageVersion.objects.exclude(value=b"").order_by(
        "address", "slot", "block_number"
    )
    found = newest.distinct("address", "slot")[:40]
    return [
        (
            bytes(row.address),
            int.from_bytes(row.slot),
            row.block_number,
            int.from_bytes(row.value),
        )
        for row in found
    ]


def test_storage_before_and_after_a_write(w3: Web3) -> None:
    written = slots()
    assert len(written) == 40
    for account, slot, number, value in written:
        address = Web3.to_checksum_address(account)
        after = w3.eth.get_storage_at(address, slot, number)
        assert after == HexBytes(value.to_bytes(32))
        before = w3.eth.get_storage_at(address, slot, number - 1)
        assert before == HexBytes(bytes(32))
        block_hash = BLOCKS[number - 1].header.hash
        assert w3.eth.get_storage_at(address, slot, block_hash) == after


def test_storage_of_an_unknown_account_is_zero(w3: Web3) -> None:
    address = Web3.to_checksum_address("0x" + "12" * 20)
    assert w3.eth.get_storage_at(address, 5) == HexBytes(bytes(32))


def test_what_is_not_there_is_reported_by_its_exception(w3: Web3) -> None:
    beyond = HEAD.header.number + 1
    address = Web3.to_checksum_address("0x" + "12" * 20)
    with pytest.raises(BlockNotFound):
        w3.eth.get_block(UNKNOWN)
    with pytest.raises(BlockNotFound):
        w3.eth.get_block(beyond, True)
    with pytest.raises(TransactionNotFound):
        w3.eth.get_transaction_by_block(UNKNOWN, 0)
    with pytest.raises(TransactionNotFound):
        w3.eth.get_transaction_by_block(HEAD.header.hash, len(HEAD.transactions))
    with pytest.raises(Web3RPCError, match="header not found"):
        w3.eth.get_storage_at(address, 0, beyond)
    with pytest.raises(Web3RPCError, match="header for hash not found"):
        w3.eth.get_storage_at(address, 0, UNKNOWN)
    with pytest.raises(TransactionNotFound):
        w3.eth.get_transaction(UNKNOWN)
    with pytest.raises(TransactionNotFound):
        w3.eth.get_transaction_receipt(UNKNOWN)
    with pytest.raises(BlockNotFound):
        w3.eth.get_block_transaction_count(beyond)
    with pytest.raises(MethodUnavailable):
        w3.eth.sign(address, data=b"\0")


def test_batch_answers_in_order(w3: Web3) -> None:
    with w3.batch_requests() as batch:
        for block in BLOCKS[:20]:
            batch.add(w3.eth.get_block(block.header.number, True))
            batch.add(w3.eth.get_block(block.header.hash))
        found = batch.execute()
    for block, (by_number, by_hash) in zip(
        BLOCKS, zip(found[::2], found[1::2], strict=True), strict=False
    ):
        check_block(by_number, block, full=True)
        check_block(by_hash, block, full=False)


def test_batch_with_something_unknown_fails_by_its_exception(w3: Web3) -> None:
    with w3.batch_requests() as batch:
        batch.add(w3.eth.get_block(1))
        batch.add(w3.eth.get_block(UNKNOWN))
        with pytest.raises(BlockNotFound):
            batch.execute()


@pytest.mark.parametrize("key", ["", "nk_" + "0" * 36, "anything"])
def test_wrong_key_is_an_http_error(live: Live, key: str) -> None:
    w3 = without_retries(f"{live.base_url}/v3/{key}")
    with pytest.raises(requests.HTTPError) as refusal:
        w3.eth.get_block("latest")
    assert refusal.value.response.status_code == 401
    assert refusal.value.response.json()["error"]["code"] == -32002
    assert not w3.is_connected()


def test_key_in_a_header_is_a_key(live: Live) -> None:
    headers = HTTPProvider.get_request_headers()
    headers["Authorization"] = f"Bearer {live.new_key()}"
    provider = HTTPProvider(f"{live.base_url}/v3", request_kwargs={"headers": headers})
    assert Web3(provider).eth.chain_id == 202_611


async def ask_asynchronously(url: str) -> None:
    w3 = AsyncWeb3(AsyncHTTPProvider(url))
    try:
        assert await w3.is_connected()
        assert await w3.eth.chain_id == 202_611
        assert await w3.eth.block_number == HEAD.header.number
        found = await asyncio.gather(
            *(w3.eth.get_block(block.header.hash, True) for block in BLOCKS[-30:])
        )
        for block, each in zip(BLOCKS[-30:], found, strict=True):
            check_block(each, block, full=True)
        each = await w3.eth.get_transaction_by_block(HEAD.header.hash, 0)
        check_transaction(each, HEAD, 0)
        with pytest.raises(BlockNotFound):
            await w3.eth.get_block(UNKNOWN)
        async with w3.batch_requests() as batch:
            batch.add(w3.eth.get_block("latest"))
            batch.add(w3.eth.get_block(1, True))
            head, first = await batch.async_execute()
        check_block(head, HEAD, full=False)
        check_block(first, BLOCKS[0], full=True)
    finally:
        await w3.provider.disconnect()


def test_asynchronous_calls(url: str) -> None:
    asyncio.run(ask_asynchronously(url))


async def ask_with_a_wrong_key(url: str) -> None:
    provider = AsyncHTTPProvider(url, exception_retry_configuration=None)
    w3 = AsyncWeb3(provider)
    try:
        with pytest.raises(ClientResponseError) as refusal:
            await w3.eth.get_block("latest")
        assert refusal.value.status == 401
    finally:
        await provider.disconnect()


def test_asynchronous_call_with_a_wrong_key(live: Live) -> None:
    asyncio.run(ask_with_a_wrong_key(f"{live.base_url}/v3/wrong"))
