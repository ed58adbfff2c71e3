"""The requests whose responses are recorded, made from a chain's blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from evm.blocks import Block
from tests.golden.chains import Chain
from tests.golden.options import CHEAP, EXECUTED, INVALID, SHORTENED
from tests.golden.recording import Call
from tests.nodeapi.chain.verifying import verify_chain

_TAGS = ("latest", "earliest", "safe", "finalized")
"""Not `pending`, because geth makes that block at the time of the call."""
_UNKNOWN = "0x" + "12" * 32
_ADDRESS = "0x" + "34" * 20
_SLOTS_PER_BLOCK = 4
_TRANSACTIONS_PER_BLOCK = 6
"""Number of transactions of a block. Others are similar to these."""
_EXECUTED_GAS = 3_000_000
"""Blocks with more gas are not executed again, because that takes long."""

_MALFORMED_HASHES = ["0x", "0x12", _UNKNOWN[2:], "0x" + "zz" * 32, _UNKNOWN + "12", 1]
_MALFORMED_NUMBERS = ["", "0x", "1", "0x01", "0xg", "0x" + "f" * 17, "newest", 1, True]
_MALFORMED: dict[str, list[Any]] = {
    "hash": [*_MALFORMED_HASHES, "0X" + "12" * 32, None, [], {}],
    "number": [*_MALFORMED_NUMBERS, "0x8000000000000000", None, {}],
    "block": [
        *(*_MALFORMED_NUMBERS, *_MALFORMED_HASHES, None, {}, []),
        {"blockHash": "0x12"},
        {"blockHash": _UNKNOWN, "blockNumber": "0x1"},
        {"blockHash": _UNKNOWN, "requireCanonical": 1},
        {"blockNumber": 1},
        {"blockHash": None},
    ],
    "index": [*_MALFORMED_NUMBERS, "0xfffffffff", None, {}],
    "flag": ["true", 1, None, {}],
    "address": ["0x12", _ADDRESS[2:], _ADDRESS + "1", "0x" + "zz" * 20, 1, None],
    "slot": ["", "0x", "1", "0x1", "0x" + "1" * 65, "0xzz", "zz", 1, None, {}],
    "slots": [
        *("", [], {}, None, {_ADDRESS: None}, {_ADDRESS: []}, {_ADDRESS: ["0x1"]}),
        *({"0x12": [_UNKNOWN]}, {_ADDRESS: _UNKNOWN}, {_ADDRESS: [_UNKNOWN] * 1025}),
    ],
    "data": ["", "0x", "12", "0x1", "0xzz", "0X12", 1, None, {}],
    "options": INVALID,
    "count": [
        *("", "0x", "0x00", "0x01", "5", "05", " 5", "-1", "0xg", "1e1", "1_0", 0, 3),
        *(-1, 2.5, True, None, [], "0x401", "0xffffffffffffffff", "0x1" + "0" * 16),
    ],
    "percentiles": [
        *(None, [], {}, "x", 5, [None], ["5"], [True], [[]], [0, 100], [0.5, 1e-7]),
        *([-1], [100.5], [50, 50], [50, 20], [10, 20, 15], list(range(101))),
    ],
    "call": [
        *({}, None, [], "0x", 1, {"to": "0x12"}, {"to": None}, {"from": 1}),
        *({"gas": "1"}, {"gas": 1}, {"gas": "0x1" + "0" * 16}, {"value": "0x01"}),
        *({"data": "0x1"}, {"data": "0x12", "input": "0x13"}, {"input": None}),
        *({"gasPrice": "0x1", "maxFeePerGas": "0x1"}, {"chainId": "0x7"}),
        *({"maxFeePerGas": "0x1", "maxPriorityFeePerGas": "0x2"}, {"nonce": "0x5"}),
        *({"accessList": {}}, {"accessList": [{"address": _ADDRESS}]}),
        *({"blobVersionedHashes": []}, {"authorizationList": []}, {"unknown": 1}),
        *({"to": _ADDRESS, "value": "0x1"}, {"input": "0xfe"}, {"input": "0x5f5ffd"}),
        *({"input": "0x" + "00" * 49_153}, {"to": _ADDRESS, "gas": "0x5207"}),
        {"to": _ADDRESS, "maxFeePerBlobGas": "0x1"},
    ],
    "keys": [
        *(None, [], {}, "0x1", ["0x1"], ["1"], ["0xzz"], ["0x" + "1" * 65], [1]),
        *([None], [_UNKNOWN, "0x0"], [_UNKNOWN] * 1025),
    ],
    "plain": [None, "1", "0x1", -1, 1.5, 10**6, 2**63, {}],
    "bytes": [None, "", "0x", "0x1", "12", _UNKNOWN, "0x" + "ff" * 33, 1, {}],
}
"""Values that a parameter of a kind does not take, or barely takes."""

Kinds = dict[str, str]
"""Kinds of a method's parameters, separated by spaces, by the method's name."""

_KINDS: Kinds = {
    "eth_chainId": "",
    "eth_blockNumber": "",
    "eth_syncing": "",
    "net_version": "",
    "net_listening": "",
    "web3_sha3": "data",
    "eth_getBlockByHash": "hash flag",
    "eth_getBlockByNumber": "number flag",
    "eth_getBlockReceipts": "block",
    "eth_getBlockTransactionCountByHash": "hash",
    "eth_getBlockTransactionCountByNumber": "number",
    "eth_getUncleCountByBlockHash": "hash",
    "eth_getUncleCountByBlockNumber": "number",
    "eth_getUncleByBlockHashAndIndex": "hash index",
    "eth_getUncleByBlockNumberAndIndex": "number index",
    "eth_getTransactionByHash": "hash",
    "eth_getTransactionByBlockHashAndIndex": "hash index",
    "eth_getTransactionByBlockNumberAndIndex": "number index",
    "eth_getTransactionReceipt": "hash",
    "eth_getStorageAt": "address slot block",
    "eth_getStorageValues": "slots block",
    "debug_getRawBlock": "block",
    "debug_getRawHeader": "block",
    "debug_getRawTransaction": "hash",
    "debug_traceBlockByHash": "hash options",
    "debug_traceBlockByNumber": "number options",
    "debug_traceTransaction": "hash options",
}
"""The kinds of parameters of each method that both sides have."""


GROUPS = ("blocks", "storage", "by tag", "malformed", *CHEAP, *EXECUTED)
"""The groups that responses are compared in."""


def calls_to(chain: Chain) -> Iterator[Call]:
    """Yield every request to a chain, in an order that is always the same."""
    for block in chain.blocks:
        yield from _block(block)
        yield from _traces(block)
    yield from _storage(chain)
    if chain.is_general:
        yield from by_tag(_KINDS, len(chain.blocks))
        yield from malformed(_KINDS, chain.blocks)


def _block(block: Block) -> Iterator[Call]:
    """Yield the requests for a block, its uncles and its transactions."""
    number, block_hash = hex(block.header.number), _hex(block.header.hash)
    transactions = range(_count(block) + 1)
    calls: list[tuple[str, *tuple[Any, ...]]] = [
        ("eth_getBlockByHash", block_hash, True),
        ("eth_getBlockByNumber", number, False),
        ("eth_getBlockReceipts", block_hash),
        ("eth_getBlockReceipts", {"blockHash": block_hash, "requireCanonical": True}),
        ("debug_getRawBlock", number),
        ("debug_getRawHeader", block_hash),
    ]
    for name, way in ((block_hash, "Hash"), (number, "Number")):
        calls += [
            (f"eth_getBlockTransactionCountBy{way}", name),
            (f"eth_getUncleCountByBlock{way}", name),
        ]
        for index in range(len(block.uncles) + 1):
            calls.append((f"eth_getUncleByBlock{way}AndIndex", name, hex(index)))
        for index in transactions:
            calls.append((f"eth_getTransactionByBlock{way}AndIndex", name, hex(index)))
    for transaction in block.transactions[:_TRANSACTIONS_PER_BLOCK]:
        for method in (
            "eth_getTransactionByHash",
            "eth_getTransactionReceipt",
            "debug_getRawTransaction",
        ):
            calls.append((method, _hex(transaction.hash)))
    for method, *params in calls:
        yield Call("blocks", method, params)


def _traces(block: Block) -> Iterator[Call]:
    """Yield traces of a block: all tracers by number, some by hash and transaction.

    Fewer of those for which the service executes the block, because that takes long.
    """
    number, block_hash = hex(block.header.number), _hex(block.header.hash)
    is_short = _count(block) <= _TRANSACTIONS_PER_BLOCK
    is_executed = is_short and block.header.gas_used <= _EXECUTED_GAS
    for group, given in {**CHEAP, **(EXECUTED if is_executed else {})}.items():
        if group in SHORTENED and block.header.number % 4:
            continue
        yield Call(group, "debug_traceBlockByNumber", [number, given])
        if block.header.number % (16 if group in EXECUTED else 8) == 0:
            yield Call(group, "debug_traceBlockByHash", [block_hash, given])
            for transaction in block.transactions[:1]:
                params = [_hex(transaction.hash), given]
                yield Call(group, "debug_traceTransaction", params)


def _storage(chain: Chain) -> Iterator[Call]:
    """Yield changed slots before and after the block that changed them."""
    verified, _ = verify_chain(chain.genesis, b"".join(chain.raw))
    for block, result in zip(chain.blocks, verified, strict=True):
        number = block.header.number
        after = {"blockHash": _hex(block.header.hash)}
        slots = sorted(
            (account, slot)
            for account, values in result.changes.storage.items()
            for slot in values
        )
        for account, slot in slots[:_SLOTS_PER_BLOCK]:
            address, word = _hex(account), f"0x{slot:064x}"
            for method, *params in (
                ("eth_getStorageAt", address, hex(slot), hex(number - 1)),
                ("eth_getStorageAt", address, word, after),
                ("eth_getStorageValues", {address: [word]}, hex(number)),
            ):
                yield Call("storage", method, params)


def by_tag(kinds_of: Kinds, height: int) -> Iterator[Call]:
    """Yield requests by tag, and for what does not exist.

    height: the number of the newest block.
    """
    values: dict[str, list[Any]] = {
        "hash": [_UNKNOWN],
        "number": [*_TAGS, hex(height + 1), "0x7fffffffffffffff"],
        "block": [
            *(*_TAGS, hex(height + 1), _UNKNOWN),
            *({"blockHash": _UNKNOWN}, {"blockNumber": hex(height + 1)}),
            {"blockHash": _UNKNOWN, "requireCanonical": True},
            {"blockNumber": "latest"},
        ],
        "index": ["0x0"],
        "flag": [False],
        "address": [_ADDRESS],
        "slot": ["0x0"],
        "slots": [{_ADDRESS: [_UNKNOWN]}],
        "data": ["0x1234"],
        "options": [{"tracer": "callTracer"}],
        "count": ["0x4"],
        "percentiles": [[10, 50.5, 99]],
        "call": [{"to": _ADDRESS}],
        "keys": [[_UNKNOWN]],
        "plain": [1],
        "bytes": ["0x"],
    }
    for method, text in kinds_of.items():
        kinds = text.split()
        if not kinds:
            yield Call("by tag", method, [])
        for place, kind in enumerate(kinds):
            for value in values[kind]:
                params = [values[kind][0] for kind in kinds]
                params[place] = value
                yield Call("by tag", method, params)


def malformed(kinds_of: Kinds, blocks: list[Block]) -> Iterator[Call]:
    """Yield each method with malformed, missing and surplus parameters.

    The block has a single transaction, which calls a contract.
    """
    block = next(
        block
        for block in reversed(blocks)
        if _count(block) == 1 and block.transactions[0].data
    )
    transaction = block.transactions[0]
    valid: dict[str, Any] = {
        "hash": _hex(block.header.hash),
        "number": hex(block.header.number),
        "block": "latest",
        "index": "0x0",
        "flag": False,
        "address": _ADDRESS,
        "slot": "0x0",
        "slots": {_ADDRESS: [_UNKNOWN]},
        "data": "0x1234",
        "options": {"tracer": "noopTracer"},
        "count": "0x2",
        "percentiles": [50],
        "call": {"to": _ADDRESS, "input": "0x12"},
        "keys": [_UNKNOWN],
        "plain": 0,
        "bytes": "0x",
    }
    for method, text in kinds_of.items():
        kinds = text.split()
        good = [valid[kind] for kind in kinds]
        if "Transaction" in method and kinds[0] == "hash" and "Block" not in method:
            good[0] = _hex(transaction.hash)
        given = [good[:count] for count in range(len(good))] + [[*good, None]]
        for place, kind in enumerate(kinds):
            for value in _MALFORMED[kind]:
                given.append([*good[:place], value, *good[place + 1 :]])
        for params in given:
            yield Call("malformed", method, params)


def _count(block: Block) -> int:
    return len(block.transactions)


def _hex(value: bytes) -> str:
    return "0x" + value.hex()
