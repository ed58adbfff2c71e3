"""The JavaScript tracers that come with the service."""

import pytest

from nodeapi.tracers.javascript import BUNDLED_TRACERS, tracer_source
from tests.support.programs import ALICE, CONTRACT, OTHER, trace_call

US, THEM = "0x" + CONTRACT.hex(), "0x" + OTHER.hex()
SENDER = "0x" + ALICE.address.hex()
ADD = "6001 6002 01 50 00"
CALL = f"6000 6000 6004 6000 6000 73{OTHER.hex()} 61 1000 f1 50 00"
"""CALL with four bytes of zeros."""
GIVE = "602a 6000 52 6020 6000 f3"
"""RETURN of 42."""


def test_there_is_one_for_each_of_geths_names():
    assert set(BUNDLED_TRACERS) == {
        *("4byteTracerLegacy", "bigramTracer", "callTracerLegacy", "evmdisTracer"),
        *("noopTracerLegacy", "opcountTracer", "prestateTracerLegacy"),
        *("trigramTracer", "unigramTracer"),
    }
    assert tracer_source("{ }") == "{ }"


@pytest.mark.parametrize(
    ("tracer", "expected"),
    [
        ("noopTracerLegacy", {}),
        ("opcountTracer", 5),
        ("unigramTracer", {"PUSH1": 2, "ADD": 1, "POP": 1, "STOP": 1}),
        ("bigramTracer",
         {"PUSH1-PUSH1": 1, "PUSH1-ADD": 1, "ADD-POP": 1, "POP-STOP": 1}),
        ("trigramTracer",
         {"PUSH1-PUSH1-ADD": 1, "PUSH1-ADD-POP": 1, "ADD-POP-STOP": 1}),
    ],
)  # fmt: skip
def test_counts(tracer, expected):
    assert trace_call(tracer, ADD) == expected


def test_pairs_and_runs_stay_within_a_call():
    codes = {OTHER: "5b 00"}
    pairs = trace_call("bigramTracer", CALL, codes=codes)
    assert pairs["JUMPDEST-STOP"] == 1
    assert not {"CALL-JUMPDEST", "STOP-POP"} & set(pairs)
    runs = trace_call("trigramTracer", CALL, codes=codes)
    assert not [run for run in runs if "JUMPDEST" in run or "CALL-POP" in run]


def test_four_byte_counts_selectors():
    found = trace_call(
        "4byteTracerLegacy", CALL + CALL, data=bytes.fromhex("a9059cbb") + bytes(64)
    )
    # The first STOP ends it: one call.
    assert found == {"0xa9059cbb-64": 1, "0x00000000-0": 1}
    precompile = CALL.replace(OTHER.hex(), "00" * 19 + "04")
    assert trace_call("4byteTracerLegacy", precompile) == {}


def test_call_tree_tells_what_ran():
    call = f"6020 6000 6000 6000 6005 73{OTHER.hex()} 61 1000 f1 50"
    empty = "6000 6000 6000 6000 6000 6000 6000 f1 00"
    found = trace_call(
        "callTracerLegacy", call + empty, codes={OTHER: GIVE}, gas=90_000
    )
    used = found.pop("gasUsed")
    assert 21_000 < int(used, 16) < 90_000
    assert found == {
        "type": "CALL", "from": SENDER, "to": US, "value": "0x0",
        "gas": hex(90_000), "input": "0x", "output": "0x",
        "calls": [
            {"type": "CALL", "from": US, "to": THEM, "value": "0x5",
             "gas": hex(0x1000 + 2300), "gasUsed": hex(18), "input": "0x",
             "output": "0x" + "2a".rjust(64, "0")},
            {"type": "CALL", "from": US, "to": "0x" + "00" * 20, "value": "0x0",
             "input": "0x"},
        ],
    }  # fmt: skip


def test_call_tree_tells_of_failures():
    poor = "6000 6000 6000 6000 61ffff 6000 6000 f1 50"
    broken = f"6000 6000 6000 6000 73{OTHER.hex()} 61 1000 f4 50"
    creation = "60fe 6000 53 6001 6000 6000 f0 50"
    ending = "6001 6000 fd"
    found = trace_call(
        "callTracerLegacy",
        poor + broken + creation + ending,
        codes={OTHER: "fe"},
        gas=200_000,
    )
    assert found["error"] == "execution reverted"
    assert found["output"] == "0xfe"
    refused, failed, created = found["calls"]
    assert refused["error"] == "internal failure"
    assert "gas" not in refused
    assert failed == {
        "type": "DELEGATECALL", "from": US, "to": THEM, "gas": "0x1000",
        "gasUsed": "0x1000", "input": "0x", "error": "invalid opcode: INVALID",
    }  # fmt: skip
    assert created["error"] == "invalid opcode: INVALID"
    assert "to" not in created


def test_prestate_is_what_was_there_before():
    code = f"6007 6001 55 73{OTHER.hex()} 31 50 00"
    found = trace_call("prestateTracerLegacy", code, value=3, codes={OTHER: ""})
    slot, zero = "0x" + "01".rjust(64, "0"), "0x" + "00" * 32
    assert found == {
        SENDER: {"balance": hex(10**24), "nonce": 0, "code": "0x", "storage": {}},
        US: {"balance": "0x64", "nonce": 0, "code": "0x" + code.replace(" ", ""),
             "storage": {slot: zero}},
        THEM: {"balance": "0x64", "nonce": 0, "code": "0x", "storage": {}},
    }  # fmt: skip


@pytest.mark.parametrize("code", ["", "6000 6000 fd", "fe"])
def test_prestate_is_right_whatever_the_outcome(code):
    found = trace_call("prestateTracerLegacy", code, value=3)
    assert found[SENDER]["balance"] == hex(10**24)
    assert found[SENDER]["nonce"] == 0
    assert found[US]["balance"] == "0x64"


def test_prestate_has_no_contract_that_was_created():
    found = trace_call("prestateTracerLegacy", to=b"", data=bytes.fromhex("5b00"))
    assert list(found) == [SENDER]
    assert found[SENDER]["balance"] == hex(10**24)


def test_disassembly_nests_calls():
    found = trace_call("evmdisTracer", CALL, codes={OTHER: GIVE})
    assert found[0] == {"op": 0x60, "depth": 1, "result": ["0"], "len": 2}
    (call,) = [entry for entry in found if entry["op"] == 0xF1]
    assert call["to"] == OTHER.hex()
    assert (call["value"], call["gas"]) == ("0", 0x1000)
    assert call["input"] == {"0": 0, "1": 0, "2": 0, "3": 0}
    assert call["result"] == ["1"]
    assert [entry["op"] for entry in call["ops"]] == [
        0x60,
        0x60,
        0x52,
        0x60,
        0x60,
        0xF3,
    ]
    assert call["return"]["31"] == 42
    assert [entry["op"] for entry in found][-2:] == [0x50, 0x00]


def test_disassembly_tells_of_errors():
    found = trace_call("evmdisTracer", CALL, codes={OTHER: "fe"})
    (call,) = [entry for entry in found if entry["op"] == 0xF1]
    assert call["error"] == "invalid opcode: INVALID"
    assert call["result"] == ["0"]
