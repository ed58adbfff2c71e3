"""Calls with various arguments and overrides, compared with a geth of the same chain."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evm.blocks import encode_block
from samples.builder import ChainBuilder
from samples.contracts import contract
from samples.signers import Signer
from samples.system_contracts import system_contracts_alloc
from tests.golden import geth as geths
from tests.support import chains
from tests.support.live import Api, live_service

ALICE, BOB, POOR = Signer("alice"), Signer("bob"), Signer("poor")
A, B, P = (f"0x{signer.address.hex()}" for signer in (ALICE, BOB, POOR))
NOBODY = "0x00000000000000000000000000000000000dead0"


def account(number: int) -> str:
    return f"0x{0xC0DE0000 + number:040x}"


CODES = {
    "environment": "43 6000 52 48 6020 52 4a 50 3a 6040 52 32 6060 52 33 6080 52 45"
    " 60a0 52 42 60c0 52 44 60e0 52 41 610100 52 46 610120 52 34 610140 52 36 610160 52"
    " 31 610180 52 6101a0 6000 f3",
    "blockhash": "6000 35 40 6000 52 6020 6000 f3",
    "slot": "6000 35 54 6000 52 6020 6000 f3",
    "store": "6001 6000 55 6000 6001 55 6002 54 50 00",
    "revert": "6000 6000 fd",
    "reason": "7f08c379a000000000000000000000000000000000000000000000000000000000 6000 52"
    " 6020 6004 52 6005 6024 52 64 68656c6c6f 60d8 1b 6044 52 6064 6000 fd",
    "panic": "7f4e487b7100000000000000000000000000000000000000000000000000000000 6000 52"
    " 6011 6004 52 6024 6000 fd",
    "panic99": "7f4e487b7100000000000000000000000000000000000000000000000000000000 6000"
    " 52 6099 6004 52 6024 6000 fd",
    "shortreason": "6308c379a0 60e0 1b 6000 52 6004 6000 fd",
    "loop": "5b 6000 56",
    "invalid": "fe",
    "unknown": "0c",
    "underflow": "50",
    "badjump": "6003 56",
    "overflow": "5b 6000 6000 56",
    "gas": "5a 6000 52 6020 6000 f3",
    "balance": "6000 35 31 6000 52 6020 6000 f3",
    "code": "6000 35 3f 6000 52 6000 35 3b 6020 52 6040 6000 f3",
    "caller": "6020 6000 6020 6000 6000 6000 35 5a f1 6040 52 6060 6000 f3",
    "forward": "6000 6000 6000 6000 6000 35 6020 35 5a f1 6000 52 6020 6000 f3",
    "memory": "6001 63ffffffff 52 00",
    "hugememory": "6001 7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"
    " 52 00",
    "log": "6001 6002 6003 6020 6000 a3 00",
    "destroy": "33 ff",
    "retcopy": "6020 6000 6000 3e 00",
    "blobbasefee": "4a 6000 52 6020 6000 f3",
    "blobhash": "6000 49 6000 52 6020 6000 f3",
    "stingy": "61c350 5a 10 6010 57 00 5b 6000 6000 fd",
    "create": "6c 600a 600c 6000 39 600a 6000 f3 00 6000 52 600d 6013 6000 f0 6000 52 6020"
    " 6000 f3",
    "refund": "6000 6005 55 6000 6006 55 00",
}
CODES["blobbasefee"] = "4a 6000 52 6020 6000 f3"
ADDRESSES = {name: account(number) for number, name in enumerate(CODES)}
STORAGE = {f"0x{slot:064x}": f"0x{slot + 7:064x}" for slot in range(1, 8)}
FORKS: tuple[str, ...] = (
    "homestead",
    "eip150",
    "eip155",
    "eip158",
    "byzantium",
    "constantinople",
)
FORKS += ("petersburg", "istanbul", "berlin", "london")
BLOBS = {"target": 6, "max": 9, "baseFeeUpdateFraction": 5007716}
GENESIS: dict[str, Any] = {
    "config": {
        "chainId": 4242,
        **{f"{fork}Block": 0 for fork in FORKS},
        "terminalTotalDifficulty": 0,
        **{f"{fork}Time": 0 for fork in ("shanghai", "cancun", "prague", "osaka")},
        "blobSchedule": {
            "cancun": {"target": 3, "max": 6, "baseFeeUpdateFraction": 3338477},
            "prague": BLOBS,
            "osaka": BLOBS,
        },
    },
    "timestamp": "0x6553f100",
    "gasLimit": hex(30_000_000),
    "difficulty": "0x0",
    "alloc": {},
}
RICH = hex(10**20)
CRASHED = {"error": {"code": -32603, "message": "method handler crashed"}}
"""geth's answer to an access list of a creation with blobs or authorizations."""


def genesis() -> dict[str, Any]:
    alloc = system_contracts_alloc()
    for name, code in CODES.items():
        alloc[ADDRESSES[name]] = {
            "balance": "0x64",
            "nonce": "0x1",
            "code": "0x" + code.replace(" ", ""),
            "storage": STORAGE if name in ("slot", "refund") else {},
        }
    for address in (A, B):
        alloc[address] = {"balance": RICH}
    alloc[P] = {"balance": "0x3e8"}
    return {**GENESIS, "alloc": alloc}


def blocks() -> list[bytes]:
    chain = ChainBuilder(genesis())
    for number in range(4):
        chain.send(ALICE, BOB.address, value=number)
        if number == 1:
            chain.deploy(BOB, contract("token").init_code((10**6).to_bytes(32)))
        chain.block()
    return [encode_block(block) for block in chain.blocks]


def word(value: int) -> str:
    return f"0x{value:064x}"


def cases() -> Iterator[tuple[str, list[Any]]]:
    """Yield methods with parameters."""
    to = ADDRESSES
    plain = [{"to": to[name]} for name in CODES if name != "loop"]
    fees: list[dict[str, Any]] = [
        {"gasPrice": "0x0"},
        {"gasPrice": "0x1"},
        {"gasPrice": "0x77359400"},
        {"maxFeePerGas": "0x77359400"},
        {"maxFeePerGas": "0x77359400", "maxPriorityFeePerGas": "0x3"},
        {"maxFeePerGas": "0x1", "maxPriorityFeePerGas": "0x3"},
        {"maxFeePerGas": "0x1"},
        {"maxPriorityFeePerGas": "0x1"},
        {"gasPrice": "0x1", "maxFeePerGas": "0x1"},
        {"gasPrice": "0x1", "maxPriorityFeePerGas": "0x0"},
        {"maxFeePerGas": "0x0", "maxPriorityFeePerGas": "0x0"},
        {"maxFeePerGas": hex(2**255), "maxPriorityFeePerGas": "0x0"},
        {"maxFeePerGas": hex(2**250), "gas": hex(2**62)},
    ]
    others: list[dict[str, Any]] = [
        {"value": "0x1"},
        {"value": "0x65"},
        {"from": A, "value": "0x1"},
        {"from": P, "value": "0x3e8"},
        {"from": P, "value": "0x3e9"},
        {"from": P, "value": "0x3e8", "gasPrice": "0x77359400"},
        {"gas": "0x0"},
        {"gas": "0x5207"},
        {"gas": "0x5208"},
        {"gas": "0x5500"},
        {"gas": hex(2**63)},
        {"gas": hex(60_000_000), "from": A, "gasPrice": "0x77359400"},
        {"nonce": "0x7"},
        {"chainId": "0x1"},
        {"chainId": "0x1092"},
        {"data": "0x01", "input": word(3)},
        {"data": word(2)},
        {"input": "0x" + "00ff" * 2000, "gas": hex(60_000)},
        {"accessList": [{"address": to["slot"], "storageKeys": [word(1), word(2)]}]},
        {"accessList": []},
        {"blobVersionedHashes": []},
        {"blobVersionedHashes": ["0x01" + "11" * 31]},
        {"blobVersionedHashes": ["0x02" + "11" * 31]},
        {"blobVersionedHashes": ["0x01" + "11" * 31] * 7},
        {"blobVersionedHashes": ["0x01" + "11" * 31], "maxFeePerBlobGas": "0x1"},
        {
            "blobVersionedHashes": ["0x01" + "11" * 31],
            "maxFeePerBlobGas": "0x1",
            "from": A,
        },
        {"maxFeePerBlobGas": "0x0"},
        {"maxFeePerBlobGas": "0x5"},
        {"authorizationList": []},
        {"authorizationList": [authorization()]},
        {"authorizationList": [authorization(to["caller"], 4242)], "from": A},
        {"type": "0x2", "unknown": 17.5},
    ]
    for method in ("eth_call", "eth_estimateGas", "eth_createAccessList"):
        for call in plain:
            yield method, [call]
            yield method, [{**call, "from": A, "input": word(5)}, "latest"]
            yield method, [{**call, "gas": hex(100_000), "value": "0x0"}, "0x2"]
        for name in ("environment", "slot", "store", "blobbasefee", "blobhash", "gas"):
            for extra in (*fees, *others):
                yield method, [{"to": to[name], "from": B, **extra}]
                yield method, [{"to": to[name], **extra}]
        for extra in (*fees, *others):
            yield method, [{"to": NOBODY, "from": B, **extra}]
            yield (
                method,
                [{"from": A, "input": "0x600a600c600039600a6000f300", **extra}],
            )
        yield method, [{}]
        yield method, [{"from": A}]
        yield method, [None]
        yield method, [{"input": "0x60006000fd"}]
        yield method, [{"from": A, "input": "0x00" * 1 + "00" * 49152}]
        yield method, [{"from": A, "input": "0xfe"}]
        yield method, [{"from": A, "input": "0x60ef60005360016000f3"}]
        yield method, [{"from": A, "input": "0x6160016000f3"}]
        for number in range(1, 19):
            data = {"to": f"0x{number:040x}", "input": word(1) + "00" * 96}
            yield method, [data]
        yield method, [{"to": f"0x{256:040x}", "input": "0x" + "11" * 160}]
        for target in ("slot", "loop", "revert", "code", "destroy", "create", "refund"):
            call = {"to": to["forward"], "input": "0x" + "00" * 32 + "00" * 12}
            call["input"] += to[target][2:]
            if target != "loop":  # which takes this service more than 5 s
                yield method, [call]
            yield method, [{**call, "gas": hex(200_000)}]
        for target in (A, to["slot"], NOBODY, f"0x{2:040x}"):
            for name in ("balance", "code"):
                yield method, [{"to": to[name], "input": "0x" + "00" * 12 + target[2:]}]
        for block in ("0x0", "0x4", "0x5", "earliest", "0x01"):
            yield method, [{"to": to["environment"]}, block]
        for number in range(6):
            yield method, [{"to": to["blockhash"], "input": word(number)}]
            yield method, [{"to": to["blockhash"], "input": word(number)}, "0x3"]
        for overrides in state_overrides():
            for name in ("slot", "store", "environment", "code", "balance"):
                call = {"to": to[name], "input": word(1)}
                yield method, [call, "latest", overrides]
            call = {"to": f"0x{2:040x}", "input": "0x1234"}
            yield method, [call, "latest", overrides]
            yield method, [{**call, "to": NOBODY}, "latest", overrides]
            yield method, [{"to": NOBODY, "value": "0x5", "from": P}, "0x1", overrides]
        if method == "eth_createAccessList":
            continue
        for changed in block_overrides():
            for name in ("environment", "blockhash", "blobbasefee"):
                call = {"to": to[name], "input": word(2)}
                yield method, [call, "latest", None, changed]
                yield (
                    method,
                    [{**call, "from": A, "gasPrice": "0x77359400"}, "0x3", {}, changed],
                )
    yield from malformed()


def authorization(target: str = NOBODY, chain_id: int = 1) -> dict[str, str]:
    return {
        "chainId": hex(chain_id),
        "address": target,
        "nonce": "0x0",
        "yParity": "0x0",
        "r": "0x1",
        "s": "0x1",
    }


def state_overrides() -> Iterator[dict[str, Any]]:
    to = ADDRESSES
    slot, identity, sha = to["slot"], f"0x{4:040x}", f"0x{2:040x}"
    yield {}
    yield {slot: {}}
    yield {slot: {"state": {word(1): word(99)}}}
    yield {slot: {"stateDiff": {word(1): word(99)}}}
    yield {slot: {"state": {}}}
    yield {slot: {"state": {}, "stateDiff": {}}}
    yield {slot: {"code": "0x602a60005260206000f3"}}
    yield {slot: {"code": "0x"}}
    yield {NOBODY: {"code": "0x602a60005260206000f3", "balance": "0x5", "nonce": "0x9"}}
    yield {NOBODY: {"state": {word(1): word(1)}}}
    yield {P: {"balance": "0x4"}}
    yield {P: {"balance": hex(2**256 - 1)}}
    yield {sha: {}}
    yield {sha: {"code": "0x602a60005260206000f3"}}
    yield {sha: {"movePrecompileToAddress": NOBODY}}
    yield {sha: {"movePrecompileToAddress": sha}}
    yield {sha: {"movePrecompileToAddress": identity}}
    yield {sha: {"movePrecompileToAddress": NOBODY}, NOBODY: {}}
    yield {
        identity: {"movePrecompileToAddress": NOBODY},
        sha: {"movePrecompileToAddress": NOBODY},
    }
    yield {sha: {"movePrecompileToAddress": slot}}
    yield {slot: {"movePrecompileToAddress": NOBODY}}
    yield {identity: {"movePrecompileToAddress": sha}}


def block_overrides() -> Iterator[dict[str, Any]]:
    yield {}
    yield {"number": "0x5"}
    yield {"number": "0x10"}
    yield {"number": "0x2"}
    yield {"time": "0x1"}
    yield {"Time": "0x75000000", "gasLimit": "0x5208"}
    yield {"feeRecipient": A, "prevRandao": word(77), "difficulty": "0x9"}
    yield {"baseFeePerGas": "0x5"}
    yield {"baseFeePerGas": hex(10**12)}
    yield {"blobBaseFee": "0x5"}
    yield {"beaconRoot": word(1)}
    yield {"withdrawals": []}


def malformed() -> Iterator[tuple[str, list[Any]]]:
    to = ADDRESSES["slot"]
    call: Any
    overrides: Any
    block: Any
    for call in (
        *("0x", 5, [], True, "x"),
        *({"to": "0x12"}, {"to": 5}, {"to": "zz"}, {"to": "0x" + "zz" * 20}),
        *({"gas": "latest"}, {"gas": "0x"}, {"gas": ""}, {"gas": "0x01"}, {"gas": 5}),
        *({"gas": "0x1" + "0" * 16}, {"gas": "0xg"}, {"GAS": "0xg"}, {"value": "0xg"}),
        *({"value": "0x1" + "0" * 64}, {"value": "0x" + "f" * 64}, {"nonce": "0x1g"}),
        *(
            {"data": "0x1"},
            {"data": "12"},
            {"data": 1},
            {"input": "0xzz"},
            {"data": None},
        ),
        *(
            {"accessList": 5},
            {"accessList": {}},
            {"accessList": [5]},
            {"accessList": [{}]},
        ),
        {"accessList": [{"address": to}]},
        {"accessList": [{"address": "0x1", "storageKeys": []}]},
        {"accessList": [{"address": to, "storageKeys": ["0x1"]}]},
        {"accessList": [{"address": to, "storageKeys": [5]}]},
        {"accessList": [{"address": to, "storageKeys": 5}]},
        {"blobVersionedHashes": ["0x1"]},
        {"blobVersionedHashes": "0x1"},
        {"authorizationList": [{}]},
        {"authorizationList": [{**authorization(), "nonce": None}]},
        {"authorizationList": [{**authorization(), "r": "5"}]},
        {"authorizationList": [{**authorization(), "r": ""}]},
        {"authorizationList": [{**authorization(), "yParity": 5}]},
        {"authorizationList": 5},
        {"gas": "0xg", "to": "0x1"},
        {"to": "0x1", "gas": "0xg"},
    ):
        yield "eth_call", [call]
    for overrides in (
        *(5, "x", [], {"0x1": {}}, {to: 5}, {to: {"nonce": 5}}, {to: {"balance": "5"}}),
        *({to: {"state": 5}}, {to: {"state": {"0x1": word(1)}}}, {to: {"code": "0x1"}}),
        *({to: {"stateDiff": {word(1): "0x1"}}}, {to: None}, {"zz": {}}),
    ):
        yield "eth_call", [{"to": to}, "latest", overrides]
    for block in (5, [], {"number": 5}, {"Time": "x"}, {"feeRecipient": "0x1"}):
        yield "eth_call", [{"to": to}, "latest", {}, block]
    yield "eth_call", []
    yield "eth_call", [{"to": to}, "latest", {}, {}, 5]
    yield "eth_estimateGas", []
    yield "eth_createAccessList", [{"to": to}, "latest", {}, {}]


@pytest.fixture(scope="module")
def both(
    module_db: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Api, geths.Geth]]:
    try:
        binary = geths.find_geth()
    except geths.GethError as error:
        pytest.skip(str(error))
    raw = blocks()
    chains.import_blocks("calls", genesis(), raw)
    folder: Path = tmp_path_factory.mktemp("geth")
    with (
        geths.running_geth(binary, genesis(), b"".join(raw), folder) as geth,
        live_service() as live,
        live.api("calls", live.new_key()) as api,
    ):
        yield api, geth


def test_answers_are_geths(both: tuple[Api, geths.Geth]) -> None:
    api, geth = both
    wrong = []
    for method, params in cases():
        expected = geth.call(method, params)
        answer = api.ask(method, *params)
        found = {name: answer[name] for name in ("result", "error") if name in answer}
        if expected == CRASHED:
            assert "error" in found, (method, params, found)
        elif found != expected:
            wrong.append((method, json.dumps(params)[:300], expected, found))
    assert not wrong, "\n".join(
        [f"{len(wrong)} of {len(list(cases()))}", *map(str, wrong[:60])]
    )
