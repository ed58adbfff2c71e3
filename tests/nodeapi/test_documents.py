import dataclasses
import json

import pytest

from evm.blocks import Block, Withdrawal
from evm.signing import sign_transaction
from nodeapi.documents.blocks import (
    block_document,
    count_transactions,
    count_uncles,
    pack_full_block,
    pending_transaction_document,
    transaction_document,
    unpack_full_block,
)
from tests.evm.test_headers import AMSTERDAM, CANCUN, HEADER, LONDON, PRAGUE, SHANGHAI
from tests.evm.test_transactions import (
    BLOB_HASH,
    FIELDS,
    KEY,
    SENDER,
    SLOTS,
    TO,
)
from tests.support import execution_apis

COMMON = {
    "blockHash",
    "blockNumber",
    "blockTimestamp",
    "transactionIndex",
    "hash",
    "type",
    "from",
    "to",
    "nonce",
    "gas",
    "gasPrice",
    "value",
    "input",
    "v",
    "r",
    "s",
}
TYPED = {"chainId", "yParity", "accessList"}
FEES = {"maxFeePerGas", "maxPriorityFeePerGas"}
MEMBERS = {
    "legacy": set(),
    "protected": {"chainId"},
    "creation": {"chainId"},
    "access list": TYPED,
    "dynamic fee": TYPED | FEES,
    "blob": TYPED | FEES | {"maxFeePerBlobGas", "blobVersionedHashes"},
    "set code": TYPED | FEES | {"authorizationList"},
}
BLOCK_MEMBERS = {
    "totalDifficulty",
    "difficulty",
    "extraData",
    "gasLimit",
    "gasUsed",
    "hash",
    "logsBloom",
    "miner",
    "mixHash",
    "nonce",
    "number",
    "parentHash",
    "receiptsRoot",
    "sha3Uncles",
    "size",
    "stateRoot",
    "timestamp",
    "transactions",
    "transactionsRoot",
    "uncles",
}
FULL = Block(
    PRAGUE,
    tuple(sign_transaction(fields, KEY) for fields in FIELDS.values()),
    (HEADER, LONDON),
    (Withdrawal(0, 255, b"\x07" * 20, 10**9),),
)


def described(name, header=HEADER, index=0):
    transaction = sign_transaction(FIELDS[name], KEY)
    return json.loads(transaction_document(transaction, header, index))


@pytest.mark.parametrize("name", FIELDS)
def test_each_type_has_its_members(name):
    assert described(name).keys() == COMMON | MEMBERS[name]


def test_transaction_stands_in_its_block():
    transaction = described("protected", SHANGHAI, 16)
    assert transaction["blockHash"] == "0x" + SHANGHAI.hash.hex()
    assert transaction["blockNumber"] == "0x7"
    assert transaction["blockTimestamp"] == "0xc"
    assert transaction["transactionIndex"] == "0x10"
    assert transaction["from"] == "0x" + SENDER.hex()
    assert transaction["to"] == "0x" + TO.hex()
    assert transaction["value"] == hex(10**18)
    assert transaction["input"] == "0x"
    assert transaction["v"] == "0x25"
    assert transaction["chainId"] == "0x1"


def test_members_of_typed_transactions_are_quantities_and_data():
    assert described("access list")["accessList"] == [
        {
            "address": "0x" + TO.hex(),
            "storageKeys": [f"0x{slot:064x}" for slot in SLOTS],
        },
        {"address": "0x" + SENDER.hex(), "storageKeys": []},
    ]
    blob = described("blob")
    assert blob["maxFeePerBlobGas"] == "0xb"
    assert blob["blobVersionedHashes"] == ["0x" + BLOB_HASH.hex()] * 2
    assert blob["accessList"] == []
    assert blob["v"] == blob["yParity"]
    authorization = FIELDS["set code"]["authorization_list"][0]
    assert described("set code")["authorizationList"] == [
        {
            "chainId": "0x0",
            "address": "0x" + TO.hex(),
            "nonce": "0x5",
            "yParity": hex(authorization.y_parity),
            "r": hex(authorization.r),
            "s": hex(authorization.s),
        }
    ]


@pytest.mark.parametrize(
    ("name", "base_fee", "price"),
    [
        ("legacy", 3, 20 * 10**9),
        ("access list", 3, 5),
        ("dynamic fee", 3, 5),
        ("dynamic fee", 6, 7),
        ("blob", 3, 3),
    ],
)
def test_gas_price_is_what_was_paid(name, base_fee, price):
    header = dataclasses.replace(LONDON, base_fee_per_gas=base_fee)
    assert described(name, header)["gasPrice"] == hex(price)


def test_creation_has_no_recipient():
    assert described("creation")["to"] is None


def test_pending_transaction_is_in_no_block():
    transaction = sign_transaction(FIELDS["dynamic fee"], KEY)
    pending = json.loads(pending_transaction_document(transaction))
    mined = described("dynamic fee", LONDON)
    place = {"blockHash", "blockNumber", "blockTimestamp", "transactionIndex"}
    assert {name for name, value in pending.items() if value is None} == place
    assert pending["gasPrice"] == pending["maxFeePerGas"] == "0x7"
    for name in mined.keys() - place - {"gasPrice"}:
        assert pending[name] == mined[name]


@pytest.mark.parametrize(
    ("header", "withdrawals", "members"),
    [
        (HEADER, None, set()),
        (LONDON, None, {"baseFeePerGas"}),
        (SHANGHAI, (), {"baseFeePerGas", "withdrawalsRoot", "withdrawals"}),
        (
            CANCUN,
            (),
            {
                "baseFeePerGas",
                "withdrawalsRoot",
                "withdrawals",
                "blobGasUsed",
                "excessBlobGas",
                "parentBeaconBlockRoot",
            },
        ),
        (
            PRAGUE,
            (),
            {
                "baseFeePerGas",
                "withdrawalsRoot",
                "withdrawals",
                "blobGasUsed",
                "excessBlobGas",
                "parentBeaconBlockRoot",
                "requestsHash",
            },
        ),
        (
            AMSTERDAM,
            (),
            {
                "baseFeePerGas",
                "withdrawalsRoot",
                "withdrawals",
                "blobGasUsed",
                "excessBlobGas",
                "parentBeaconBlockRoot",
                "requestsHash",
                "blockAccessListHash",
                "slotNumber",
            },
        ),
    ],
)
def test_each_fork_has_its_members(header, withdrawals, members):
    document, _ = block_document(Block(header, (), (), withdrawals), 0)
    assert json.loads(document).keys() == BLOCK_MEMBERS | members


def test_block_document_can_be_cut_at_both_ends():
    document, offset = block_document(FULL, 2**70)
    assert document.startswith(b'{"totalDifficulty":"0x400000000000000000",')
    assert document.endswith(b"]}")
    hashes = ["0x" + transaction.hash.hex() for transaction in FULL.transactions]
    assert json.loads(document[offset:-1]) == hashes
    assert json.loads(document[:offset] + b"[7]}")["transactions"] == [7]
    assert list(json.loads(document))[-1] == "transactions"


def test_transaction_objects_take_the_place_of_their_hashes():
    document, offset = block_document(FULL, 5)
    objects = [
        transaction_document(transaction, FULL.header, index)
        for index, transaction in enumerate(FULL.transactions)
    ]
    full = unpack_full_block(pack_full_block(document, offset, objects))
    expected = json.loads(document) | {"transactions": list(map(json.loads, objects))}
    assert list(json.loads(full).items()) == list(expected.items())
    empty = unpack_full_block(pack_full_block(document, offset, []))
    assert empty == document[:offset] + b"[]}"


def test_a_full_block_that_is_damaged_is_an_error():
    packed = pack_full_block(b'{"transactions":', 16, [b'{"hash":"0x1"}'] * 100)
    cut = (b"", packed[:-1], b"\0" + packed[1:], packed[:-8] + bytes(8))
    for damaged in (*cut, bytes(5), b"\xff\xff\xff\x7f\x10a"):
        with pytest.raises(ValueError, match="document is damaged"):
            unpack_full_block(damaged)


def test_block_document_says_what_the_block_is():
    block = json.loads(block_document(FULL, 5)[0])
    assert block["hash"] == "0x" + PRAGUE.hash.hex()
    assert block["number"] == "0x7"
    assert block["size"] == hex(FULL.size)
    assert block["nonce"] == "0x0000000000000000"
    assert block["logsBloom"] == "0x" + "00" * 256
    assert block["baseFeePerGas"] == "0x0"
    assert block["uncles"] == ["0x" + HEADER.hash.hex(), "0x" + LONDON.hash.hex()]
    assert block["withdrawals"] == [
        {
            "index": "0x0",
            "validatorIndex": "0xff",
            "address": "0x" + "07" * 20,
            "amount": hex(10**9),
        }
    ]


def test_pending_block_has_four_nulls():
    pending = json.loads(block_document(FULL, 5, pending=True)[0])
    found = json.loads(block_document(FULL, 5)[0])
    nulls = {"hash", "logsBloom", "nonce", "number"}
    assert {name for name, value in pending.items() if value is None} == nulls
    for name in found.keys() - nulls:
        assert pending[name] == found[name]


def recorded_blocks():
    return {"0x" + block.header.hash.hex(): block for block in execution_apis.blocks()}


def test_blocks_are_those_that_geth_answers():
    blocks, compared = recorded_blocks(), 0
    for (block_hash, is_full), answer in execution_apis.exchanges("eth_getBlockByHash"):
        if answer.get("result") is None:
            continue
        block = blocks[block_hash]
        document = json.loads(block_document(block, 0)[0])
        del document["totalDifficulty"]
        if is_full:
            document["transactions"] = [
                json.loads(transaction_document(transaction, block.header, index))
                for index, transaction in enumerate(block.transactions)
            ]
        assert document == answer["result"]
        compared += 1
    assert compared


def test_transactions_are_those_that_geth_answers():
    blocks, compared = recorded_blocks(), 0
    method = "eth_getTransactionByBlockHashAndIndex"
    for (block_hash, position), answer in execution_apis.exchanges(method):
        block, index = blocks[block_hash], int(position, 16)
        transaction = block.transactions[index]
        document = transaction_document(transaction, block.header, index)
        assert json.loads(document) == answer["result"]
        compared += 1
    assert compared


def test_transactions_and_uncles_of_a_block_object_are_counted():
    for uncles in ((), (HEADER,), (HEADER, LONDON)):
        for transactions in ((), FULL.transactions[:1], FULL.transactions):
            block = dataclasses.replace(FULL, transactions=transactions, uncles=uncles)
            document, _ = block_document(block, 0)
            assert count_transactions(document) == len(transactions)
            assert count_uncles(document) == len(uncles)
