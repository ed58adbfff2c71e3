"""The values of steps, and the struct logger's entries for them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evm.delegations import DELEGATION_PREFIX
from evm.frame_errors import REVERTED
from evm.tracers.frames import CallFrame
from evm.tracers.steps import ExecutionTimeout, TracerError
from evm.tracers.struct_log import StructLogger, StructLogOptions
from tests.evm.frames import CONTRACT, SENDER, call
from tests.evm.test_interpreter import push
from tests.evm.tracers.stepper import (
    CostChecker,
    stepped_state,
)

OTHER = b"\x55" * 20
HUGE = push(2**256 - 1)


def steps(fork: str, code: bytes, **message: Any) -> CostChecker:
    checker = CostChecker()
    state = stepped_state(fork, checker)
    state.world.set_balance(CONTRACT, 10)
    call(state, code, **message)
    return checker


def log(
    code: bytes, options: StructLogOptions | None = None, fork: str = "osaka", **m: Any
) -> dict[str, Any]:
    """Return the struct logger's parsed result for a call."""
    pieces: list[bytes] = []
    logger = StructLogger(options or StructLogOptions(), pieces.append)
    frame = call(stepped_state(fork, logger), code, **m)
    top = CallFrame("CALL", SENDER, CONTRACT, 10**6, b"", 0, 0)
    top.output, top.error = frame.output, REVERTED if not frame.is_success else None
    logger.end(top, 21_000)
    pieces.append(logger.result())
    answer: dict[str, Any] = json.loads(b"".join(pieces))
    return answer


@pytest.mark.parametrize(
    ("code", "gas", "error"),
    [
        (b"\x01", 100, "stack underflow (0 <=> 2)"),
        (push(1) + b"\x01", 100, "stack underflow (1 <=> 2)"),
        (push(1) + b"\x9f", 100, "stack underflow (1 <=> 17)"),
        (b"\x5b\x58\x60\x00\x56", 10**6, "stack limit reached 1024 (1023)"),
        (push(1) * 2 + b"\x01", 7, "out of gas"),
        (HUGE + b"\x51", 10**6, "gas uint64 overflow"),
        (push(2**40) + b"\x51", 10**6, "out of gas: gas uint64 overflow"),
        (push(2**30) + b"\x51", 10**6, "out of gas"),
        (
            push(1) * 2 + b"\x55",
            2306,
            "out of gas: not enough gas for reentrancy sentry",
        ),
        (
            push(49_153) + push(0) * 2 + b"\xf0",
            10**6,
            "out of gas: max initcode size exceeded: code size 49153 limit 49152",
        ),
        (push(0) * 5 + push(0x55) + push(0) + b"\xf1", 1100, "out of gas: out of gas"),
    ],
)
def test_an_instruction_that_can_not_be_executed_is_reported_first(
    code: bytes, gas: int, error: str
) -> None:
    seen = steps("osaka", code, gas=gas)
    assert seen.entries[-1]["error"] == error
    assert [entry["error"] for entry in seen.entries[:-1]] == [None] * (
        len(seen.entries) - 1
    )
    assert seen.faults == []


@pytest.mark.parametrize("opcode", [0x55, 0xF0, 0xF5, 0xFF])
def test_writes_in_a_static_call_are_known_before(opcode: int) -> None:
    seen = steps("osaka", push(0) * 4 + bytes([opcode]), is_static=True)
    assert seen.entries[-1]["error"] == "out of gas: write protection"
    value = push(0) * 4 + push(1) + push(7) + push(0) + b"\xf1"
    seen = steps("osaka", value, is_static=True)
    assert seen.entries[-1]["error"] == "out of gas: write protection"


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (push(0) * 2 + b"\xfd", "execution reverted"),
        (b"\xfe", "invalid opcode: INVALID"),
        (b"\x0c", "invalid opcode: opcode 0xc not defined"),
        (b"\x4b", "invalid opcode: SLOTNUM"),
        (b"\xe8", "invalid opcode: EXCHANGE"),
        (b"\xfb", "invalid opcode: EXTSTATICCALL"),
        (push(3) + b"\x56", "invalid jump destination"),
        (push(1) + push(3) + b"\x57", "invalid jump destination"),
        (push(4) + b"\x56\x60\x5b", "invalid jump destination"),
        (push(1) + push(0) * 2 + b"\x3e", "return data out of bounds"),
    ],
)
def test_what_fails_while_it_runs_is_a_fault(code: bytes, error: str) -> None:
    seen = steps("osaka", code)
    assert [fault["error"] for fault in seen.faults] == [error]
    assert seen.entries[-1]["pc"] == seen.faults[0]["pc"]
    assert seen.entries[-1]["error"] is None


@pytest.mark.parametrize("opcode", [0xA0, 0x5D])
def test_other_writes_in_a_static_call_are_faults(opcode: int) -> None:
    seen = steps("osaka", push(0) * 4 + bytes([opcode]), is_static=True)
    assert [fault["error"] for fault in seen.faults] == ["write protection"]


def test_an_opcode_that_comes_later_has_its_name_already() -> None:
    seen = steps("london", push(1) + b"\x1e")
    assert seen.entries[-1]["op"] == "CLZ"
    assert seen.faults[0]["error"] == "invalid opcode: CLZ"
    assert steps("osaka", push(1) + b"\x1e").entries[1]["cost"] == 5


def test_a_call_s_cost_holds_the_gas_that_it_gives() -> None:
    code = push(0) * 5 + push(0x55) + push(1000) + b"\xf1\x00"
    entries = steps("osaka", code).entries
    assert entries[-2]["cost"] == 2600 + 1000
    value = push(0) * 4 + push(1) + push(0x55) + push(1000) + b"\xf1\x00"
    entries = steps("osaka", value).entries
    assert entries[-2]["cost"] == 2600 + 9000 + 25_000 + 1000  # without the stipend
    assert entries[-1]["gas"] == entries[-2]["gas"] - 2600 - 34_000 + 2300


def test_a_creation_s_cost_does_not() -> None:
    entries = steps("osaka", push(0) * 3 + b"\xf0\x00").entries
    assert entries[-2]["cost"] == 32_000


def test_a_delegate_costs_what_its_account_costs() -> None:
    for warm in (False, True):
        checker = CostChecker()
        state = stepped_state("prague", checker)
        state.world.set_code(OTHER, DELEGATION_PREFIX + b"\x66" * 20)
        touch = push(int.from_bytes(b"\x66" * 20, "big")) + b"\x31\x50" if warm else b""
        code = touch + push(0) * 4 + push(int.from_bytes(OTHER, "big")) + push(0)
        call(state, code + b"\xfa\x00")
        (cost,) = [e["cost"] for e in checker.entries if e["op"] == "STATICCALL"]
        assert cost == 2600 + (100 if warm else 2600)


def test_the_stop_at_the_code_s_end_is_a_step() -> None:
    entries = steps("osaka", b"\x61\x01").entries
    assert [(e["pc"], e["op"], e["cost"]) for e in entries] == [
        (0, "PUSH2", 3),
        (3, "STOP", 0),
    ]
    assert entries[1]["stack"] == [0x0100]


def test_an_account_without_code_has_no_steps() -> None:
    assert steps("osaka", b"").entries == []


def test_a_reverted_call_takes_its_refund_back() -> None:
    clear = push(0) + push(1) + b"\x55"
    checker = CostChecker()
    state = stepped_state("london", checker)
    state.world.set_storage(CONTRACT, 1, 7)
    state.world.set_code(OTHER, clear + push(0) * 2 + b"\xfd")
    other = push(int.from_bytes(OTHER, "big"))
    # By DELEGATECALL, the callee's code clears a slot of the caller, and fails.
    call(state, push(0) * 4 + other + push(50_000) + b"\xf4" + clear + b"\x00")
    refunds = [
        (e["depth"], e["refund"]) for e in checker.entries if e["op"] == "SSTORE"
    ]
    assert refunds == [(2, 4800), (1, 4800)]
    after_the_call = next(
        i
        for i, e in enumerate(checker.entries)
        if i
        and e["op"] == "PUSH1"
        and e["depth"] == 1
        and checker.entries[i - 1]["depth"] == 2
    )
    assert checker.entries[after_the_call]["refund"] == 0


def test_a_deadline_ends_a_loop() -> None:
    state = stepped_state("osaka", CostChecker(), seconds=0.05)
    with pytest.raises(ExecutionTimeout, match="execution timeout"):
        call(state, bytes.fromhex("5b600056"), gas=10**9)  # this would take minutes


def test_a_tracer_s_error_comes_through() -> None:
    class Failing(CostChecker):
        def step(self, step: Any) -> None:
            raise TracerError("no more")

    with pytest.raises(TracerError, match="no more"):
        call(stepped_state("osaka", Failing()), b"\x00")


def test_an_entry_has_what_was_asked_for() -> None:
    code = push(7) + push(0) + b"\x52" + push(1) + push(2) + b"\x55\x00"
    entries = log(code)["structLogs"]
    assert entries[0] == {
        "pc": 0,
        "op": "PUSH1",
        "gas": 1_000_000,
        "gasCost": 3,
        "depth": 1,
        "stack": [],
    }
    assert list(entries[0]) == ["pc", "op", "gas", "gasCost", "depth", "stack"]
    assert entries[-2]["stack"] == ["0x1", "0x2"]
    assert entries[-2]["storage"] == {f"0x{2:064x}": f"0x{1:064x}"}
    assert "memory" not in entries[-1]
    options = StructLogOptions(
        enable_memory=True, disable_stack=True, disable_storage=True
    )
    entries = log(code, options)["structLogs"]
    assert entries[-2]["op"] == "SSTORE"
    assert entries[-2].keys() == {"pc", "op", "gas", "gasCost", "depth", "memory"}
    assert entries[-2]["memory"] == [f"0x{7:064x}"]
    assert "memory" not in entries[2]  # before MSTORE expands the memory


def test_memory_is_reported_in_words() -> None:
    entries = log(push(1) + push(64) + b"\x52\x00", StructLogOptions(True))
    assert entries["structLogs"][-1]["memory"] == [
        "0x" + "00" * 32,
        "0x" + "00" * 32,
        f"0x{1:064x}",
    ]


def test_return_data_is_reported_if_enabled() -> None:
    identity = push(0) + push(0) + push(3) + push(0) + push(4) + b"\x5a\xfa\x00"
    plain = log(identity)["structLogs"]
    assert all("returnData" not in entry for entry in plain)
    told = log(identity, StructLogOptions(enable_return_data=True))["structLogs"]
    assert [e.get("returnData") for e in told[-2:]] == [None, "0x000000"]


def test_storage_grows_with_what_a_contract_touches() -> None:
    code = push(5) + b"\x54" + push(9) + push(6) + b"\x55" + push(5) + b"\x54\x00"
    entries = log(code)["structLogs"]
    seen = [list(e["storage"].values()) for e in entries if "storage" in e]
    zero, nine = f"0x{0:064x}", f"0x{9:064x}"
    assert seen == [[zero], [zero, nine], [zero, nine]]


def test_a_limit_counts_entries() -> None:
    code = push(1) * 5 + b"\x00"
    assert len(log(code, StructLogOptions(limit=2))["structLogs"]) == 2
    assert len(log(code, StructLogOptions(limit=6))["structLogs"]) == 6
    assert len(log(code, StructLogOptions(limit=0))["structLogs"]) == 6


def test_the_outcome_is_reported_at_the_end() -> None:
    answer = log(push(5) + push(0) + b"\x52" + push(32) + push(0) + b"\xf3")
    assert answer["gas"] == 21_000
    assert answer["failed"] is False
    assert answer["returnValue"] == f"0x{5:064x}"
    reverted = log(push(5) + push(0) + b"\x52" + push(32) + push(0) + b"\xfd")
    assert (reverted["failed"], reverted["returnValue"]) == (True, f"0x{5:064x}")
    assert log(b"\xfe")["returnValue"] == "0x"


def test_stacks_of_nested_frames_do_not_mix() -> None:
    pieces: list[bytes] = []
    logger = StructLogger(StructLogOptions(), pieces.append)
    checker = CostChecker()
    code = push(0) * 4 + push(int.from_bytes(OTHER, "big")) + push(9999) + b"\xfa"
    code = push(0xAA) + (code + b"\x80") * 2 + b"\x90\x91\x50\x00"
    inner = push(0xBB) + push(0xCC) + b"\x01\x80\x91\x90\x00"
    for tracer in (logger, checker):
        state = stepped_state("osaka", tracer)
        state.world.set_code(OTHER, inner)
        call(state, code)
    logger.end(CallFrame("CALL", SENDER, CONTRACT, 1, b"", 0, 0), 1)
    pieces.append(logger.result())
    entries = json.loads(b"".join(pieces))["structLogs"]
    stacks = [[int(item, 16) for item in entry["stack"]] for entry in entries]
    assert stacks == [entry["stack"] for entry in checker.entries]
    assert {entry["depth"] for entry in entries} == {1, 2}
