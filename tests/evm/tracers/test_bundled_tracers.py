"""The JavaScript tracers that come with the service.

The results were compared with geth 1.17.2's tracers of the same names, for a chain of
192 transactions that both had imported.
"""

import pytest

from evm.tracers.javascript import BUNDLED_TRACERS, tracer_source
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
         {"--PUSH1": 1, "-PUSH1-ADD": 1, "PUSH1-ADD-POP": 1, "ADD-POP-STOP": 1}),
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
    # The first instruction of a call, and the first one after it, are left out.
    assert not [run for run in runs if "JUMPDEST" in run or "POP" in run]
    assert (runs["--STOP"], runs["-PUSH1-PUSH1"]) == (2, 1)


def test_four_byte_counts_selectors():
    found = trace_call(
        "4byteTracerLegacy", CALL + CALL, data=bytes.fromhex("a9059cbb") + bytes(64)
    )
    # The first STOP ends the execution after one call.
    assert found == {"0xa9059cbb-64": 1, "0x00000000-0": 1}
    # Init code counts as well, and so does a call that fails before its execution.
    init = bytes.fromhex("6001600255 00")
    found = trace_call("4byteTracerLegacy", to=b"", data=init, gas=90_000)
    assert found == {"0x60016002-2": 1}
    poor = CALL.replace("6004 6000 6000", "6004 6000 61ffff")
    assert trace_call("4byteTracerLegacy", poor) == {"0x00000000-0": 1}
    precompile = CALL.replace(OTHER.hex(), "00" * 19 + "04")
    assert trace_call("4byteTracerLegacy", precompile) == {}


def test_call_tree_contains_the_executed_calls():
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
             "input": "0x", "output": "0x"},
        ],
    }  # fmt: skip


def test_call_tree_contains_failures():
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


def test_call_tree_knows_a_revert_and_shows_no_input_of_a_selfdestruction():
    found = trace_call("callTracerLegacy", CALL, codes={OTHER: "6000 6000 fd"})
    (reverted,) = found["calls"]
    assert reverted["error"] == "execution reverted"
    assert "output" not in reverted
    ending = f"73{OTHER.hex()} ff"
    assert trace_call("callTracerLegacy", ending)["calls"] == [
        {"type": "SELFDESTRUCT", "from": US, "to": THEM, "value": "0x64"}
    ]


def test_call_tree_shows_the_memory_that_a_call_was_given_for_its_output():
    call = f"6040 6000 6000 6000 6000 73{OTHER.hex()} 61 1000 f1 50 00"
    found = trace_call("callTracerLegacy", call, codes={OTHER: GIVE})
    assert found["calls"][0]["output"] == "0x" + "2a".rjust(64, "0") + "00" * 32


def without_base_fee(gas_used):
    """Return the sender's reported balance, to which only the tip is added back.

    The chain's first block has a base fee of 875,000,000 wei per gas.
    """
    return hex(10**24 - gas_used * 875_000_000)


def test_prestate_is_what_was_there_before():
    code = f"6007 6001 55 73{OTHER.hex()} 31 50 00"
    found = trace_call("prestateTracerLegacy", code, value=3, codes={OTHER: ""})
    slot, zero = "0x" + "01".rjust(64, "0"), "0x" + "00" * 32
    used = 21_000 + 3 + 3 + 22_100 + 3 + 2600 + 2
    assert found == {
        SENDER: {"balance": without_base_fee(used), "nonce": 0, "code": "0x",
                 "storage": {}},
        US: {"balance": "0x64", "nonce": 0, "code": "0x" + code.replace(" ", ""),
             "storage": {slot: zero}},
        THEM: {"balance": "0x64", "nonce": 0, "code": "0x", "storage": {}},
    }  # fmt: skip


def test_prestate_of_a_plain_transfer():
    found = trace_call("prestateTracerLegacy", value=3)
    assert found[SENDER]["balance"] == without_base_fee(21_000)
    assert found[SENDER]["nonce"] == 0
    assert found[US]["balance"] == "0x64"


def test_prestate_lists_a_zero_slot_whose_write_failed():
    found = trace_call("prestateTracerLegacy", "6000 6009 55", gas=21_010)
    assert found[US]["storage"] == {"0x" + "09".rjust(64, "0"): "0x" + "00" * 32}


def test_prestate_has_no_contract_that_was_created():
    found = trace_call("prestateTracerLegacy", to=b"", data=bytes.fromhex("5b00"))
    assert list(found) == [SENDER]


NOTED_CALL = CALL.replace("f1 50", "f1 5b 50")
"""The same with a JUMPDEST after the call, where evmdisTracer sees nothing. In its place a
POP would make the tracer fail, in geth as well: the call's result is gone then."""


def test_disassembly_nests_calls():
    found = trace_call("evmdisTracer", NOTED_CALL, codes={OTHER: GIVE})
    assert found[0] == {"op": 0x60, "depth": 1, "result": ["0"], "len": 2}
    (call,) = [entry for entry in found if entry["op"] == 0xF1]
    assert call["to"] == OTHER.hex()
    assert (call["value"], call["gas"]) == ("0", 0x1000)
    assert call["input"] == {"0": 0, "1": 0, "2": 0, "3": 0}
    assert call["return"]["31"] == 42
    assert [entry["op"] for entry in call["ops"]] == [
        0x60,
        0x60,
        0x52,
        0x60,
        0x60,
        0xF3,
    ]
    assert call["result"] == ["1"]
    assert [entry["op"] for entry in found][-3:] == [0xF1, 0x50, 0x00]


def test_disassembly_names_delegate_calls_and_knows_no_results_of_new_opcodes():
    call = f"6000 6000 6000 6000 73{OTHER.hex()} 61 1000 fa 5b 5b 00"
    found = trace_call("evmdisTracer", "3d 5b" + call, codes={OTHER: GIVE})
    assert found[0] == {"op": 0x3D, "depth": 1, "result": []}
    (entry,) = [entry for entry in found if entry["op"] == "STATICCALL"]
    assert entry["result"] == []
    assert "value" not in entry


def test_disassembly_contains_errors():
    found = trace_call("evmdisTracer", NOTED_CALL, codes={OTHER: "01"})
    (call,) = [entry for entry in found if entry["op"] == 0xF1]
    assert call["error"] == "stack underflow (0 <=> 2)"
