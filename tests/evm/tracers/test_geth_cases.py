"""Cases in go-ethereum's format that its recorded ones do not cover.

The first are those of its calltrace_test.go, TestInternals.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from evm import rlp
from evm.hexadecimal import to_hex
from evm.signing import TransactionFields
from samples.signers import Signer, create2_address
from tests.conformance.test_geth_tracers import answer
from tests.support.geth_tracers import case_of
from tests.support.random_calls import push

ALICE = Signer("alice")
CALLED = bytes.fromhex("00000000000000000000000000000000deadbeef")
MAINNET = {
    "chainId": 1,
    "homesteadBlock": 1_150_000,
    "daoForkBlock": 1_920_000,
    "daoForkSupport": True,
    "eip150Block": "2463000",
    "eip155Block": "0x28d138",
    "eip158Block": 2_675_000,
    "byzantiumBlock": 4_370_000,
    "constantinopleBlock": 7_280_000,
    "petersburgBlock": 7_280_000,
    "istanbulBlock": 9_069_000,
    "ethash": {},
}
MERGED = {
    "chainId": 1337,
    **dict.fromkeys(
        [
            *("homesteadBlock", "eip150Block", "eip155Block", "eip158Block"),
            *("byzantiumBlock", "constantinopleBlock", "petersburgBlock"),
            *("istanbulBlock", "muirGlacierBlock", "berlinBlock", "londonBlock"),
        ],
        0,
    ),
    "terminalTotalDifficulty": 0,
    "terminalTotalDifficultyPassed": True,
    "shanghaiTime": 0,
}


def case_data(
    code: bytes,
    *,
    config: Mapping[str, Any] = MAINNET,
    number: Any = 8_000_000,
    tracer_config: Mapping[str, Any] | None = None,
    alloc: Mapping[str, Any] | None = None,
    **fields: Any,
) -> dict[str, Any]:
    """Return a case in which Alice calls a contract with that code."""
    basic: TransactionFields = {"nonce": 0, "gas": 80_000, "to": CALLED}
    transaction = ALICE.sign({**basic, **fields})  # type: ignore[typeddict-item]
    return {
        "genesis": {
            "alloc": {
                CALLED.hex(): {"nonce": 1, "code": f"0x{code.hex()}"},
                ALICE.address.hex(): {"balance": "500000000000000"},
                **(alloc or {}),
            },
            "config": dict(config),
            "mixHash": "0x" + "00" * 32,
        },
        "context": {
            "number": number,
            "difficulty": "0x30000",
            "timestamp": "5",
            "gasLimit": "6000000",
            "miner": "0x" + "00" * 20,
            "baseFeePerGas": "0",
        },
        "input": f"0x{transaction.raw.hex()}",
        "tracerConfig": tracer_config,
        "result": None,
    }


def traced(tracer: str, code: bytes, **options: Any) -> Any:
    return answer(case_of(case_data(code, **options)), tracer)


TOP = {
    "from": to_hex(ALICE.address),
    "to": to_hex(CALLED),
    "gas": "0x13880",
    "input": "0x",
    "value": "0x0",
    "type": "CALL",
}
MEMORY = push(1) + push(0) + b"\x52"
LOG0 = push(0xFF) + push(0) + b"\xa0"


def test_an_empty_call_to_an_empty_account_is_shown() -> None:
    code = b"\x60\x00\x80\x80\x80\x80" + push(0xFF) + b"\x5a\xf1"
    call = {
        "from": to_hex(CALLED),
        "to": "0x" + "00" * 19 + "ff",
        "gas": "0xe01a",
        "gasUsed": "0x0",
        "input": "0x",
        "value": "0x0",
        "type": "CALL",
    }
    expected = {**TOP, "gasUsed": "0x54d8", "calls": [call]}
    assert traced("callTracer", code) == expected


def test_a_log_without_operands_is_reported_with_stack_sizes() -> None:
    found = traced("callTracer", b"\xa3", tracer_config={"withLog": True})
    error = "stack underflow (0 <=> 5)"
    assert found == {**TOP, "gasUsed": "0x13880", "error": error}


def test_a_log_expands_memory() -> None:
    found = traced("callTracer", MEMORY + LOG0, tracer_config={"withLog": True})
    (log,) = found.pop("logs")
    assert found == {**TOP, "gasUsed": "0x5b9e"}
    data = (1).to_bytes(32, "big") + bytes(255 - 32)
    address = to_hex(CALLED)
    assert log == {
        "address": address,
        "topics": [],
        "data": to_hex(data),
        "index": "0x0",
        "position": "0x0",
    }


def test_a_creation_of_more_than_there_is_memory_for_looks_nothing_up() -> None:
    code = MEMORY + push(1) + push(0xFFFFFFFFFF) + push(1) + push(0) + b"\xf5" + LOG0
    called = {"balance": "0x0", "code": to_hex(code), "nonce": 1}
    found = traced("prestateTracer", code)
    assert len(found[to_hex(CALLED)].pop("codeHash")) == 66
    assert found == {
        to_hex(CALLED): called,
        to_hex(ALICE.address): {"balance": "0x1c6bf52634000"},
    }
    assert traced("callTracer", code)["error"] == "out of gas: gas uint64 overflow"


def test_a_creation_from_memory_that_is_yet_to_come_is_looked_up() -> None:
    code = MEMORY + push(1) + push(0xFF) + push(1) + push(0) + b"\xf5" + LOG0
    init = ((1).to_bytes(32, "big") + bytes(224))[1:256]
    created = to_hex(create2_address(CALLED, 1, init))  # type: ignore[arg-type]
    assert created not in traced("prestateTracer", code)
    options = {"tracer_config": {"includeEmpty": True}}
    assert traced("prestateTracer", code, **options)[created] == {"balance": "0x0"}


def test_logs_of_the_top_call_alone_have_no_position() -> None:
    call = push(0) * 5 + push(0xFF) + b"\x5a\xf1\x50"
    code = call + push(0) * 2 + b"\xa0" + call + push(0) * 2 + b"\xa0"

    def positions(**config: bool) -> list[tuple[str, str]]:
        config = {"withLog": True, **config}
        found = traced("callTracer", code, tracer_config=config)
        return [(log["index"], log["position"]) for log in found["logs"]]

    assert positions() == [("0x0", "0x1"), ("0x1", "0x2")]
    # geth counts the calls in its result, which has none.
    assert positions(onlyTopCall=True) == [("0x0", "0x0"), ("0x1", "0x0")]


# The form of a case


def test_numbers_may_be_written_in_any_way() -> None:
    expected = traced("callTracer", LOG0)
    alloc = {
        f"0x{CALLED.hex().upper()}": {
            "nonce": "0x01",
            "balance": "0",
            "code": to_hex(LOG0),
            "storage": {"0x1": "0x02", "03": "0x4"},
        },
        ALICE.address.hex(): {"balance": "0x1c6bf52634000", "nonce": "0"},
    }
    for number in (8_000_000, "8000000", "0x7a1200", "0x7A1200"):
        data = case_data(LOG0, number=number)
        data["genesis"]["alloc"] = alloc
        assert answer(case_of(data), "callTracer") == expected
    slots = case_of(data).state.slots[CALLED]
    assert slots == {1: 2, 3: 4}


def test_a_transaction_may_be_within_a_string_of_rlp() -> None:
    fields = {"type": 2, "chain_id": 1337}
    data = case_data(b"\x00", config=MERGED, number="1", **fields)
    plain = answer(case_of(data), "flatCallTracer")
    raw = bytes.fromhex(data["input"][2:])
    assert raw[0] == 2
    data["input"] = to_hex(rlp.encode(raw))
    assert answer(case_of(data), "flatCallTracer") == plain


NET_STORES = push(1) + push(0) + b"\x55" + push(2) + push(0) + b"\x55"


@pytest.mark.parametrize(
    ("changes", "gas_used"),
    [
        # 20,000 and 5,000. With EIP-1283, which is not active, they would be 20,000 and 200.
        ({}, 21_012 + 25_000),
        ({"petersburgBlock": 9_000_000}, 21_012 + 20_200),
        # Without its own key, Petersburg is active from Constantinople on.
        ({"petersburgBlock": None}, 21_012 + 25_000),
        ({"constantinopleBlock": None, "petersburgBlock": None}, 21_012 + 25_000),
        # A dirty slot costs Istanbul's SLOAD price, 800.
        ({"istanbulBlock": "8000000"}, 21_012 + 20_800),
    ],
)
def test_forks_come_as_the_config_says(changes: dict[str, Any], gas_used: int) -> None:
    found = traced("callTracer", NET_STORES, config=MAINNET | changes)
    assert int(found["gasUsed"], 16) == gas_used


def test_a_block_hash_is_made_up_from_its_number() -> None:
    code = push(1) + b"\x43\x03\x40" + push(0) + b"\x52" + push(32) + push(0) + b"\xf3"
    first = traced("callTracer", code)["output"]
    second = traced("callTracer", code, number=8_000_001)["output"]
    assert len({first, second, "0x" + "00" * 32}) == 3


def test_the_blocks_gas_limit_limits_no_case() -> None:
    data = case_data(b"\x45" + push(0) + b"\x52" + push(32) + push(0) + b"\xf3")
    data["context"]["gasLimit"] = 50_000
    found = answer(case_of(data), "callTracer")
    assert int(found["output"], 16) == 50_000


def test_a_mux_answers_under_the_names_that_it_was_given() -> None:
    config = {"callTracer": {"onlyTopCall": True}, "4byteTracer": None}
    found = traced("muxTracer", b"\x00", tracer_config=config, data=b"\x01\x02\x03\x04")
    assert found["4byteTracer"] == {"0x01020304-0": 1}
    assert found["callTracer"]["input"] == "0x01020304"
    assert json.dumps(found).count("gasUsed") == 1
