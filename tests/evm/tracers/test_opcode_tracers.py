"""keccak256PreimageTracer, erc7562Tracer, and muxTracer over tracers that execute.

The results were compared with geth 1.17.2's, for a chain of 192 transactions that both
had imported.
"""

from __future__ import annotations

import json
import time
from typing import Any

from eth_hash.auto import keccak

from evm.tracers.erc7562 import Erc7562Tracer
from evm.tracers.javascript import JavaScriptTracer
from evm.tracers.keccak_preimages import KeccakPreimages
from evm.tracers.mux import MuxTracer
from evm.tracers.steps import StepTracer
from nodeapi.chain.replay import Replay
from tests.support.programs import ALICE, CONTRACT, OTHER, call_origin

US, THEM = "0x" + CONTRACT.hex(), "0x" + OTHER.hex()
CALL = f"6000 6000 6004 6000 6000 73{OTHER.hex()} 61ffff f1 50"
EMPTY_SLOTS: dict[str, Any] = {
    "reads": {}, "writes": {}, "transientReads": {}, "transientWrites": {},
}  # fmt: skip


def trace(tracer: StepTracer, code: str, **call: Any) -> Any:
    replay = Replay(call_origin(code, fork="osaka", **call))
    replay.trace(tracer, 60)
    return json.loads(tracer.result())


def word(value: int) -> str:
    return f"0x{value:064x}"


def hashed(preimage: bytes) -> tuple[str, str]:
    return "0x" + keccak(preimage).hex(), "0x" + preimage.hex()


def test_preimages_are_listed_by_their_hashes() -> None:
    code = "61dead 6000 52 6002 601e 20 50 6000 6000 20 50 6003 601e 20 50 00"
    found = trace(KeccakPreimages(), code)
    # The last range ends a byte beyond the memory.
    expected = [hashed(b"\xde\xad"), hashed(b""), hashed(b"\xde\xad\0")]
    assert found == dict(expected)
    assert list(found) == sorted(found)


def test_preimage_of_an_instruction_that_fails_counts_and_a_too_long_one_does_not() -> (
    None
):
    assert trace(KeccakPreimages(), "6010 6000 20", gas=21_040) == dict(
        [hashed(bytes(16))]
    )
    assert trace(KeccakPreimages(), "62100001 6000 20") == {}
    assert trace(KeccakPreimages(), "7f" + "ff" * 32 + "6000 20") == {}
    assert trace(KeccakPreimages(), "6001 20") == {}
    assert trace(KeccakPreimages(), "") == {}


def test_erc7562_reports_opcodes_storage_and_code_of_each_call() -> None:
    code = (
        "6005 54 50 6007 6006 55 6006 54 50 6001 6002 5d 6002 5c 50"
        f"73{OTHER.hex()} 3b 15 50 73{OTHER.hex()} 3f 50 5a 50 {CALL} 00"
    )
    found = trace(Erc7562Tracer(), code, codes={OTHER: "5a 00"}, gas=200_000)
    (call,) = found.pop("calls")
    used = found.pop("gasUsed")
    assert 21_000 < int(used, 16) < 200_000
    assert found == {
        "from": "0x" + ALICE.address.hex(), "gas": hex(200_000), "to": US, "input": "0x",
        "value": "0x0",
        "accessedSlots": {
            "reads": {word(5): [word(0)]}, "writes": {word(6): 1},
            "transientReads": {word(2): 1}, "transientWrites": {word(2): 1},
        },
        # EXTCODESIZE followed by ISZERO does not count as an access.
        "extCodeAccessInfo": [THEM],
        # GAS counts, because no call follows it. PUSH, POP and ISZERO are ignored.
        "usedOpcodes": {
            "0x0": 1, "0x3b": 1, "0x3f": 1, "0x54": 2, "0x55": 1, "0x5a": 1, "0x5c": 1,
            "0x5d": 1, "0xf1": 1,
        },
        "contractSize": {THEM: {"contractSize": 2, "opcode": 0x3B}},
        "outOfGas": False,
        "type": "CALL",
    }  # fmt: skip
    assert call == {
        "from": US, "gas": "0xffff", "gasUsed": "0x2", "to": THEM, "input": "0x00000000",
        "value": "0x0", "accessedSlots": EMPTY_SLOTS, "extCodeAccessInfo": [],
        "usedOpcodes": {"0x0": 1, "0x5a": 1}, "contractSize": {}, "outOfGas": False,
        "type": "CALL",
    }  # fmt: skip


def test_erc7562_marks_a_call_that_ran_out_of_gas_but_not_the_outermost() -> None:
    found = trace(Erc7562Tracer(), CALL + "fe", codes={OTHER: "5b 6000 56"})
    (call,) = found["calls"]
    assert (call["error"], call["outOfGas"]) == ("out of gas", True)
    found = trace(Erc7562Tracer(), "5b 6000 56", gas=30_000)
    assert (found["error"], found["outOfGas"]) == ("out of gas", False)


def test_erc7562_lists_preimages_in_the_outermost_call_alone() -> None:
    found = trace(
        Erc7562Tracer(), CALL + "6001 6000 20 00", codes={OTHER: "6000 6000 20"}
    )
    assert found["keccak"] == ["0x", "0x00"]
    assert "keccak" not in found["calls"][0]


def test_erc7562_shows_logs_of_calls_that_lasted() -> None:
    code = f"6007 6001 6000 a1 {CALL} 6000 6000 a0 00"
    failing = {OTHER: "6000 6000 a0 fe"}
    assert "logs" not in trace(Erc7562Tracer(), code, codes=failing)
    found = trace(Erc7562Tracer(with_log=True), code, codes=failing)
    first = {"address": US, "topics": [word(7)], "data": "0x00", "index": "0x0",
             "position": "0x0"}  # fmt: skip
    second = {"address": US, "topics": [], "data": "0x", "index": "0x1",
              "position": "0x1"}  # fmt: skip
    assert found["logs"] == [first, second]
    assert "logs" not in found["calls"][0]


def test_erc7562_counts_what_the_caller_does_not_ignore() -> None:
    found = trace(Erc7562Tracer(frozenset({0x50})), "6001 50 00")
    assert found["usedOpcodes"] == {"0x0": 1, "0x60": 1}


def test_erc7562_passes_over_instructions_without_operands() -> None:
    # geth 1.17.2 crashes here.
    for op, count in (("54", "0x54"), ("3b", "0x3b"), ("f1", "0xf1"), ("20", "0x20")):
        found = trace(Erc7562Tracer(), op)
        assert found["error"].startswith("stack underflow")
        assert found["usedOpcodes"] == {count: 1}


def test_erc7562_walks_down_a_thousand_calls() -> None:
    again = "6000 6000 6000 6000 6000 30 5a f1 00"
    found = trace(Erc7562Tracer(), again, gas=16_000_000)
    depth = 0
    while "calls" in found:
        (found,) = found["calls"]
        depth += 1
    assert depth > 250


def test_mux_answers_for_each_of_its_tracers_in_one_execution() -> None:
    deadline = time.monotonic() + 60
    program = "{ n: 0, step: function() { this.n++ }, fault: function() {},"
    program += " result: function() { return this.n } }"
    frames = "{ n: 0, enter: function() { this.n++ }, exit: function() {},"
    frames += " fault: function() {}, result: function() { return this.n } }"
    inner = MuxTracer([("keccak256PreimageTracer", KeccakPreimages())], [])
    mux = MuxTracer(
        [
            ("z", JavaScriptTracer(program, "{}", deadline)),
            ('"', JavaScriptTracer(frames, "{}", deadline)),
            ("muxTracer", inner),
        ],
        [("noopTracer", lambda: b"{}")],
    )
    found = trace(mux, CALL + "6000 6000 20 00", codes={OTHER: "00"})
    assert list(found) == ['"', "muxTracer", "noopTracer", "z"]
    assert (found['"'], found["z"], found["noopTracer"]) == (1, 14, {})
    assert found["muxTracer"] == {"keccak256PreimageTracer": dict([hashed(b"")])}
