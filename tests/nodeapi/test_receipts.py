from __future__ import annotations

import json
from dataclasses import replace

import pytest
import rlp

from evm.blocks import Block
from evm.receipts import Log, Receipt, logs_bloom
from evm.rules.fork import BlobParameters
from evm.rules.forks import CANCUN, FRONTIER, PRAGUE
from evm.signatures import keccak
from evm.signing import sign_transaction
from evm.transactions import Transaction
from nodeapi.documents.blocks import pending_transaction_document, transaction_document
from nodeapi.documents.receipt_codec import measure, pack, unpack, unpack_pieces
from nodeapi.documents.receipts import (
    HEAD_BYTES,
    receipt_document,
    receipt_pieces,
    receipt_size,
    stored_receipts,
)
from tests.evm import test_headers as headers
from tests.evm.test_transactions import FIELDS, KEY, SENDER, TO

LOGS = [
    Log(TO, (b"\x01" * 32, b"\x02" * 32), b"\xab\xcd"),
    Log(SENDER, (), b""),
]
BLOCK_HASH = "0x" + headers.CANCUN.hash.hex()


def transactions() -> dict[str, Transaction]:
    return {name: sign_transaction(fields, KEY) for name, fields in FIELDS.items()}


def receipt(transaction: Transaction, **fields) -> Receipt:
    default = Receipt(
        type=transaction.type,
        status=1,
        state_root=None,
        cumulative_gas_used=50_000,
        gas_used=21_000,
        bloom=0,
        logs=[],
    )
    return replace(default, **fields)


def documents(header, fork, *pairs):
    """Return the decoded receipt objects of transactions."""
    block = Block(header, tuple(transaction for transaction, _ in pairs), (), None)
    stored = stored_receipts(block, [receipt for _, receipt in pairs], fork)
    return [
        json.loads(
            receipt_document(one, transaction_document(transaction, header, index))
        )
        for index, (one, (transaction, _)) in enumerate(zip(stored, pairs, strict=True))
    ]


@pytest.mark.parametrize("name", FIELDS)
def test_receipt_repeats_its_transaction(name):
    transaction = transactions()[name]
    pair = (transaction, receipt(transaction))
    _, found = documents(headers.CANCUN, CANCUN, pair, pair)
    said = json.loads(transaction_document(transaction, headers.CANCUN, 1))
    for member in ("blockHash", "blockNumber", "transactionIndex", "type", "from"):
        assert found[member] == said[member]
    assert found["to"] == said["to"]
    assert found["transactionHash"] == said["hash"]
    assert found["effectiveGasPrice"] == said["gasPrice"]
    assert "blockTimestamp" not in found


def test_receipt_contains_the_outcome_of_its_transaction():
    transaction = transactions()["protected"]
    done = receipt(transaction, logs=LOGS, bloom=logs_bloom(LOGS))
    failed = receipt(transaction, status=0, cumulative_gas_used=71_000)
    first, second = documents(
        headers.CANCUN, CANCUN, (transaction, done), (transaction, failed)
    )
    assert (first["status"], second["status"]) == ("0x1", "0x0")
    assert (first["gasUsed"], second["cumulativeGasUsed"]) == ("0x5208", "0x11558")
    assert first["logsBloom"] == f"0x{logs_bloom(LOGS):0512x}"
    assert second["logsBloom"] == "0x" + "00" * 256
    assert first["contractAddress"] is None
    assert second["logs"] == []
    assert not {"root", "blobGasUsed", "blobGasPrice"} & first.keys()


def test_logs_say_where_they_stand_and_are_numbered_through_the_block():
    transaction = transactions()["protected"]
    pair = (transaction, receipt(transaction, logs=LOGS))
    _, found = documents(headers.CANCUN, CANCUN, pair, pair)
    place = {
        "blockHash": BLOCK_HASH,
        "blockNumber": hex(headers.CANCUN.number),
        "blockTimestamp": hex(headers.CANCUN.timestamp),
        "transactionHash": "0x" + transaction.hash.hex(),
        "transactionIndex": "0x1",
        "removed": False,
    }
    assert found["logs"] == [
        {
            **place,
            "address": "0x" + TO.hex(),
            "topics": ["0x" + "01" * 32, "0x" + "02" * 32],
            "data": "0xabcd",
            "logIndex": "0x2",
        },
        {
            **place,
            "address": "0x" + SENDER.hex(),
            "topics": [],
            "data": "0x",
            "logIndex": "0x3",
        },
    ]


def test_creation_names_its_contract_even_when_it_failed():
    transaction = replace(transactions()["creation"], nonce=1)
    contract = keccak(rlp.encode([transaction.sender, b"\x01"]))[12:]
    (found,) = documents(
        headers.CANCUN, CANCUN, (transaction, receipt(transaction, status=0))
    )
    assert found["contractAddress"] == "0x" + contract.hex()


def test_receipt_before_byzantium_has_a_state_root_in_place_of_a_status():
    transaction = transactions()["legacy"]
    rooted = receipt(transaction, status=None, state_root=b"\x0c" * 32)
    (found,) = documents(headers.HEADER, FRONTIER, (transaction, rooted))
    assert found["root"] == "0x" + "0c" * 32
    assert "status" not in found


def test_blobs_are_paid_at_the_blocks_price():
    transaction = transactions()["blob"]
    pair = (transaction, receipt(transaction))
    header = replace(headers.CANCUN, excess_blob_gas=10_000_000)
    # e ** (10_000_000 / 3_338_477) = 19.99…, e ** (10_000_000 / 5_007_716) = 7.36…
    (cancun,) = documents(header, CANCUN, pair)
    (prague,) = documents(header, PRAGUE, pair)
    assert (cancun["blobGasUsed"], cancun["blobGasPrice"]) == ("0x40000", "0x13")
    assert prague["blobGasPrice"] == "0x7"
    assert PRAGUE.blob_parameters == BlobParameters(6, 9, 5_007_716)


def test_beginning_of_the_transaction_is_enough():
    fields = {**FIELDS["dynamic fee"], "nonce": 2**64 - 2, "gas": 2**64 - 1}
    fields |= {"max_fee_per_gas": 2**256 - 1, "max_priority_fee_per_gas": 2**256 - 1}
    transaction = sign_transaction(fields, KEY)
    header = replace(
        headers.CANCUN,
        number=2**64 - 1,
        timestamp=2**64 - 1,
        base_fee_per_gas=2**256 - 1,
    )
    block = Block(header, (transaction,), (), None)
    (stored,) = stored_receipts(block, [receipt(transaction, logs=LOGS)], CANCUN)
    document = transaction_document(transaction, header, 2**31 - 1)
    whole = receipt_document(stored, document)
    assert receipt_document(stored, document[:HEAD_BYTES]) == whole
    assert json.loads(whole)["effectiveGasPrice"] == hex(2**256 - 1)


def test_nothing_is_stored_that_the_transaction_says_already():
    transaction = transactions()["protected"]
    block = Block(headers.CANCUN, (transaction,), (), None)
    (stored,) = stored_receipts(block, [receipt(transaction, logs=LOGS)], CANCUN)
    own = unpack(stored)
    for known in (headers.CANCUN.hash, transaction.hash):
        assert known.hex().encode() not in own


def test_receipt_of_a_transfer_takes_little_more_than_what_is_new_in_it():
    # 32 bytes of amount, 3 addresses, 12 bits of 2048 in the bloom filter.
    word = b"\xdd\xf2R\xad\x1b\xe2\xc8\x9bi\xc2\xb0h\xfc7\x8d\xaa"
    word += b"\x95+\xa7\xf1c\xc4\xa1\x16(\xf5ZM\xf5#\xb3\xef"
    parties = [bytes(12) + keccak(name)[12:] for name in (b"from", b"to")]
    log = Log(keccak(b"token")[12:], (word, *parties), (10**18).to_bytes(32))
    transaction = transactions()["protected"]
    done = receipt(transaction, logs=[log], bloom=logs_bloom([log]))
    block = Block(headers.CANCUN, (transaction,), (), None)
    (stored,) = stored_receipts(block, [done], CANCUN)
    assert len(stored) < 190
    assert len(unpack(stored)) > 900


def test_receipt_that_ends_too_early_is_noticed():
    packed = pack(bytes(range(256)) * 1_000)
    with pytest.raises(ValueError, match="a packed receipt lacks"):
        list(unpack_pieces(packed[:-40]))


def test_long_receipt_is_made_piece_by_piece_and_measured_before():
    transaction = transactions()["protected"]
    document = transaction_document(transaction, headers.CANCUN, 0)
    block = Block(headers.CANCUN, (transaction,), (), None)
    for logs in ([], LOGS, LOGS * 5_000, [Log(TO, (), bytes(1_000_000))]):
        (stored,) = stored_receipts(block, [receipt(transaction, logs=logs)], CANCUN)
        whole = receipt_document(stored, document)
        pieces = list(receipt_pieces(stored, document))
        assert b"".join(pieces) == whole
        assert receipt_size(stored, document) == len(whole)
        assert max(map(len, pieces)) <= 2**16
    assert len(pieces) > 10


@pytest.mark.parametrize("read", [unpack, measure, lambda it: list(unpack_pieces(it))])
@pytest.mark.parametrize(
    "damaged",
    [b"", b"\x00", b"\x01", b"\x01\0\0\0\0", b"\x01\0\0\0\0no frame", b"\x02"],
)
def test_what_is_no_stored_receipt_is_refused(damaged, read):
    with pytest.raises(ValueError, match="packed receipt"):
        read(damaged)


def test_pending_transaction_has_no_receipt():
    transaction = transactions()["protected"]
    with pytest.raises(ValueError, match="no transaction object of a block"):
        receipt_document(pack(b""), pending_transaction_document(transaction))
