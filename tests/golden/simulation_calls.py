"""Requests that simulate blocks: overrides, fees, gas, order of blocks, transfers."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

from tests.golden.calls import Kinds, by_tag, malformed
from tests.golden.chains import Chain
from tests.golden.recording import Call

GROUPS = ("simulations",)

_METHOD = "eth_simulateV1"
_KINDS: Kinds = {"debug_traceCall": "call block options"}
"""The kinds of parameters of each method that both sides have."""

_SENDER, _CONTRACT, _OTHER, _NEW = (f"0x{0xC0DE00 + n:040x}" for n in range(4))
_IDENTITY, _FREE = f"0x{4:040x}", f"0x{0x99:040x}"
_WORD = f"0x{7:064x}"
_CODES = {
    "block": "435f524260205241604052446060524860805245 60a05246 60c052 60e05ff3",
    "block hash": "5f35405f5260205ff3",
    "code hash": "5f353f5f5260205ff3",
    "balance": "5f35315f5260205ff3",
    "first slot": "5f545f5260205ff3",
    "logs": "6001600260205fa2600360205fa15f5fa000",
    "logs and fails": "60205fa05f5ffd",
    "sends on": "5f5f5f5f345f355af15f5260205ff3",
    "sends on and fails": "5f5f5f5f345f355af15f5ffd",
    "delegates": "5f5f5f5f5f355af45f5260205ff3",
    "creates": "5f5f34f05f5260205ff3",
    "destroys itself": "33ff",
    "invalid": "fe",
    "undefined": "4b",
}
_FEES: tuple[dict[str, Any], ...] = (
    *({"gasPrice": "0x1"}, {"maxFeePerGas": "0x77359400"}, {"maxFeePerGas": "0x1"}),
    *({"gas": "0x5207"}, {"gas": "0x10000000"}, {"value": "0x5"}, {"nonce": "0x3"}),
    {"maxFeePerGas": "0x2", "maxPriorityFeePerGas": "0x3"},
    {"accessList": [{"address": _CONTRACT, "storageKeys": [_WORD]}]},
    {"accessList": [], "gasPrice": "0x1"},
    {"blobVersionedHashes": ["0x01" + "22" * 31], "maxFeePerBlobGas": "0x5"},
)
_BLOCKS: tuple[dict[str, Any], ...] = (
    *({"time": "0x1"}, {"time": "0xffffffffffffffff"}, {"number": "0x1"}),
    *({"gasLimit": "0xa410"}, {"baseFeePerGas": "0x5"}, {"blobBaseFee": "0x9"}),
    *({"feeRecipient": _OTHER, "prevRandao": _WORD}, {"beaconRoot": _WORD}),
    {"withdrawals": [{"address": _OTHER, "amount": "0x2"}]},
    {"difficulty": "0x0"},
)
_ACCOUNTS: tuple[dict[str, Any], ...] = (
    {_IDENTITY: {"movePrecompileToAddress": _FREE}},
    {_IDENTITY: {"movePrecompileToAddress": _IDENTITY}},
    {_IDENTITY: {"code": "0x" + _CODES["first slot"]}},
    {_SENDER: {"movePrecompileToAddress": _FREE}},
    {_CONTRACT: {"state": {_WORD: _WORD}, "stateDiff": {_WORD: _WORD}}},
    {_SENDER: {"nonce": "0xffffffffffffffff"}},
)
_FLAGS: tuple[dict[str, bool], ...] = (
    {},
    {"traceTransfers": True, "returnFullTransactions": True},
    {"validation": True},
)
_MALFORMED: tuple[Any, ...] = (
    *(None, [], {}, {"blockStateCalls": []}, {"blockStateCalls": [{}] * 257}),
    *({"blockStateCalls": value} for value in ({}, [1], "0x", [{"calls": {}}])),
    {"blockStateCalls": [{"calls": [{"to": 1}]}]},
    {"blockStateCalls": [{"calls": [{"value": "0xg"}]}]},
    {"blockStateCalls": [{"calls": [{"accessList": [{"address": "x"}]}]}]},
    {"blockStateCalls": [{"calls": [{"proofs": ["0x"]}]}]},
    {"blockStateCalls": [{"stateOverrides": {"0x": {}}}]},
    {"blockStateCalls": [{"stateOverrides": {_SENDER: {"balance": 1}}}]},
    {"blockStateCalls": [{"blockOverrides": {"withdrawals": [{"index": 1}]}}]},
    {"blockStateCalls": [{"blockOverrides": {"number": "0x01"}}]},
    {"blockStateCalls": [{"blockOverrides": {"x": 1, "number": 1}, "calls": [1]}]},
    {"blockStateCalls": [{"blockOverrides": {"x": 1, "number": 1}}]},
    {"blockStateCalls": [{"blockOverrides": {"time": 1, "Time": 1}}]},
    {"blockStateCalls": [{"blockOverrides": {"Time": "0x1", "\u0001é": 1}}]},
    *({"blockStateCalls": [{name: 1}]} for name in ("blockOverrides", "Calls")),
    {"blockStateCalls": [{"stateOverrides": 1}]},
    {"blockStateCalls": [{"stateOverrides": {_SENDER: 1}}]},
    {"blockStateCalls": [{"stateOverrides": {_SENDER: {"Balance": 1, "store": 1}}}]},
    *({"blockStateCalls": [{}], "validation": value} for value in (1, "true", None)),
)


def calls_to(chain: Chain) -> Iterator[Call]:
    """Yield every request to a chain, in an order that is always the same."""
    for blocks in _simulations(len(chain.blocks)):
        for flags in _FLAGS:
            payload = {"blockStateCalls": blocks, **flags}
            yield Call("simulations", _METHOD, [payload, "latest"])
    for payload in _MALFORMED:
        yield Call("malformed", _METHOD, [payload])
    for block in (None, "earliest", "0x1", "0x01", 1, {}, []):
        yield Call("malformed", _METHOD, [{"blockStateCalls": [{}]}, block])
    yield Call("malformed", _METHOD, [])
    yield from by_tag(_KINDS, len(chain.blocks))
    yield from malformed(_KINDS, chain.blocks)


def _simulations(height: int) -> Iterator[list[dict[str, Any]]]:
    """Yield lists of blocks. height: the number of the newest block."""
    transfer = {"from": _SENDER, "to": _OTHER}
    rich = {_SENDER: {"balance": hex(10**18)}}
    last = f"0x{height:064x}"
    for code, word in product(_CODES.values(), (_OTHER, last)):
        accounts = {
            **rich,
            _CONTRACT: {"code": "0x" + code.replace(" ", ""), "balance": "0x9"},
            _OTHER: {"code": "0x" + _CODES["logs"]},
        }
        call = {"from": _SENDER, "to": _CONTRACT, "input": f"0x{int(word, 16):064x}"}
        paying = {**call, "value": "0x3"}
        yield [{"stateOverrides": accounts, "calls": [paying, call]}, {"calls": [call]}]
    for fees in _FEES:
        yield [{"stateOverrides": rich, "calls": [{**transfer, **fees}, transfer]}]
        yield [{"calls": [{**transfer, **fees}]}]
    for changed in _BLOCKS:
        block = {"blockOverrides": changed, "stateOverrides": rich, "calls": [transfer]}
        yield [{}, block, {"calls": [transfer, transfer, transfer]}]
    for accounts in _ACCOUNTS:
        calls = [
            {"from": _SENDER, "to": to, "input": _WORD}
            for to in (_IDENTITY, _FREE, _CONTRACT)
        ]
        yield [{"stateOverrides": accounts, "calls": calls}, {"calls": calls}]
    yield from _delegating_precompiles()
    for numbers in ((3,), (1, 4), (2, 1), (2, 2), (257,)):
        yield [{"blockOverrides": {"number": hex(height + each)}} for each in numbers]


def _delegating_precompiles() -> Iterator[list[dict[str, Any]]]:
    """Yield blocks that call a precompiled contract whose account delegates to code."""
    delegating = {"code": f"0xef0100{_CONTRACT[2:]}"}
    for opcode in ("f1", "f2", "f4", "fa"):
        value = "5f" if opcode in ("f1", "f2") else ""
        caller = f"60205f60205f{value}5f355a{opcode}5f52 3d60205260405ff3"
        accounts = {
            _SENDER: {"balance": hex(10**18)},
            _CONTRACT: {"code": "0x" + _CODES["logs"]},
            _OTHER: {"code": "0x" + caller.replace(" ", "")},
            _NEW: {"code": f"0xef0100{_IDENTITY[2:]}"},
            _IDENTITY: delegating,
            _FREE: delegating,
        }
        calls = [
            {"from": _SENDER, "to": to, "input": f"0x{int(receiver, 16):064x}"}
            for to in (_IDENTITY, _FREE, _NEW, _OTHER)
            for receiver in (_IDENTITY, _FREE, _NEW)
        ]
        yield [
            {"stateOverrides": accounts, "calls": calls},
            {"calls": calls},
            {
                "stateOverrides": {_IDENTITY: {"movePrecompileToAddress": _FREE}},
                "calls": calls,
            },
        ]
