"""Reasons of reverts, and results of flatCallTracer and 4byteTracer."""

from __future__ import annotations

import json

import pytest

from evm.tracers.four_byte import four_byte_json
from evm.tracers.frames import CallFrame
from evm.tracers.revert_reason import revert_reason
from tests.support.call_codes import (
    CALL,
    CALLCODE,
    CALLEE,
    CALLER,
    DELEGATECALL,
    NOBODY,
    STATICCALL,
    call_to,
    flat,
    run,
    shown,
)
from tests.support.executed import Account, Chain
from tests.support.random_calls import push

# Reasons of reverts

ERROR, PANIC = bytes.fromhex("08c379a0"), bytes.fromhex("4e487b71")


def words(*numbers: int) -> bytes:
    return b"".join(number.to_bytes(32, "big") for number in numbers)


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        (PANIC + words(0), "generic panic"),
        (PANIC + words(0x01), "assert(false)"),
        (PANIC + words(0x11), "arithmetic underflow or overflow"),
        (PANIC + words(0x12), "division or modulo by zero"),
        (PANIC + words(0x21), "enum overflow"),
        (PANIC + words(0x22), "invalid encoded storage byte array accessed"),
        (PANIC + words(0x31), "out-of-bounds array access; popping on an empty array"),
        (PANIC + words(0x32), "out-of-bounds access of an array or bytesN"),
        (PANIC + words(0x41), "out of memory"),
        (PANIC + words(0x51), "uninitialized function"),
        (PANIC + words(0x52), "unknown panic code: 0x52"),
        (PANIC + words(2**255), f"unknown panic code: {2**255:#x}"),
        (PANIC + words(1, 2, 3), "assert(false)"),
        (PANIC + words(1)[:31], None),
        (ERROR + words(32, 2) + b"no", "no"),
        (ERROR + words(32, 2) + b"no" + bytes(30), "no"),
        (ERROR + words(64, 7, 2) + b"no", "no"),
        # With an offset of 0, the string's length is the offset itself.
        (ERROR + words(0), ""),
        (ERROR + words(32, 3) + b"no", None),
        (ERROR + words(33, 2) + b"no", None),
        (ERROR + words(2**64, 2) + b"no", None),
        (ERROR + words(32, 2**255) + b"no", None),
        (ERROR + words(32), None),
        (ERROR, None),
        (ERROR + words(32, 4) + b"a\xff\xe2\x82", "a\ufffd\ufffd\ufffd"),
        (ERROR + words(32, 5) + "é–".encode(), "é–"),
        (b"\x12\x34\x56\x78" + words(32, 2) + b"no", None),
        (b"\x08\xc3", None),
        (b"", None),
    ],
)
def test_what_a_revert_says_is_read_as_geth_reads_it(
    output: bytes, reason: str | None
) -> None:
    assert revert_reason(output) == reason
    frame = CallFrame("CALL", CALLER, CALLEE, 1, b"", 0, 0)
    frame.output, frame.error = output, "execution reverted"
    found = shown(frame)
    assert found.get("revertReason") == (reason or None)
    assert found.get("output") == (f"0x{output.hex()}" if output else None)


def test_only_a_revert_has_output_and_reason() -> None:
    frame = CallFrame("CALL", CALLER, CALLEE, 1, b"", 0, 0)
    frame.output, frame.error = PANIC + words(1), "out of gas"
    assert not shown(frame).keys() & {"output", "revertReason"}


# flatCallTracer


@pytest.mark.parametrize(
    ("error", "converted"),
    [
        ("contract creation code storage out of gas", "Out of gas"),
        ("out of gas", "Out of gas"),
        ("gas uint64 overflow", "Out of gas"),
        ("max code size exceeded", "Out of gas"),
        ("invalid jump destination", "Bad jump destination"),
        ("execution reverted", "Reverted"),
        ("return data out of bounds", "Out of bounds"),
        ("stack limit reached 1024 (1023)", "Out of stack"),
        ("precompiled failed", "Built-in failed"),
        ("invalid input length", "Built-in failed"),
        ("out of gas: not enough gas for reentrancy sentry", "Out of gas"),
        ("out of gas: write protection", "Out of gas"),
        ("invalid opcode: INVALID", "Bad instruction"),
        ("invalid opcode: opcode 0xc not defined", "Bad instruction"),
        ("stack underflow (0 <=> 5)", "Stack underflow"),
        # These texts are not converted, because geth compares the whole text.
        *(
            (text, text)
            for text in (
                "max code size exceeded: code size 24577 limit 24576",
                "stack limit reached 1024 (1022)",
                "write protection",
                "insufficient balance for transfer",
                "max call depth exceeded",
                "contract address collision",
                "nonce uint64 overflow",
                "invalid code: must not begin with 0xef",
                "bad elliptic curve pairing size",
            )
        ),
    ],
)
def test_errors_are_converted_to_paritys(error: str, converted: str) -> None:
    for kind in ("CALL", "CREATE"):
        frame = CallFrame(kind, CALLER, CALLEE, 1, b"", 0, 0, error=error)
        (plain,) = flat(frame)
        (entry,) = flat(frame, convert_parity_errors=True)
        assert (plain["error"], entry["error"]) == (error, converted)
        # The text before the conversion determines whether there is a result.
        has_result = error == "execution reverted"
        assert ("result" in plain, "result" in entry) == (has_result, has_result)


def test_precompiled_contracts_are_hidden_where_they_are_called() -> None:
    identity = (4).to_bytes(20, "big")
    kinds = (CALL, CALLCODE, DELEGATECALL, STATICCALL)
    code = b"".join(call_to(identity, kind) + b"\x50" for kind in kinds)
    code += call_to(NOBODY)
    chain = Chain("osaka", {CALLER: Account(0, 1, code)})
    top = chain.run(CALLER)
    precompiles = chain.execution.state.precompiles
    assert len(shown(top)["calls"]) == 5
    entries = flat(top, precompiles)
    assert [entry["traceAddress"] for entry in entries] == [[], [0], [1], [2]]
    assert [entry["subtraces"] for entry in entries] == [3, 0, 0, 0]
    kinds_left = [entry["action"]["callType"] for entry in entries]
    assert kinds_left == ["call", "callcode", "delegatecall", "call"]
    assert len(flat(top, precompiles, include_precompiles=True)) == 6
    # The outermost call is shown even if it calls a precompiled contract.
    assert len(flat(chain.run(identity), precompiles)) == 1


def test_a_self_destruction_is_a_suicide() -> None:
    destroy = push(int.from_bytes(NOBODY, "big")) + b"\xff"
    top = run("shanghai", call_to(CALLEE), destroy)
    entry = flat(top)[2]
    assert entry["type"] == "suicide"
    assert entry["action"] == {
        "address": f"0x{CALLEE.hex()}",
        "balance": "0x5",
        "refundAddress": f"0x{NOBODY.hex()}",
    }
    assert "result" not in entry
    (call,) = shown(top)["calls"]
    assert call["calls"] == [
        {
            "from": f"0x{CALLEE.hex()}",
            "gas": "0x0",
            "gasUsed": "0x0",
            "to": f"0x{NOBODY.hex()}",
            "input": "0x",
            "value": "0x5",
            "type": "SELFDESTRUCT",
        }
    ]


def test_a_value_that_is_nothing_is_nothing_in_flat_traces_as_well() -> None:
    top = run("osaka", call_to(CALLEE, STATICCALL))
    assert flat(top)[1]["action"]["value"] == "0x0"
    assert flat(top)[1]["result"]["output"] == "0x"


# 4byteTracer


def test_selectors_are_counted_by_the_length_of_their_arguments() -> None:
    identity = (4).to_bytes(20, "big")
    code = (
        push(0x12345678 << 224) + push(0) + b"\x52"
        b"" + call_to(CALLEE, size=36) + call_to(CALLEE, STATICCALL, size=36)
    )
    code += call_to(CALLEE, DELEGATECALL, size=4) + call_to(CALLEE, CALLCODE, size=4)
    code += call_to(CALLEE, size=3) + call_to(identity, size=36)
    code += push(36) + push(0) + push(0) + b"\xf0"
    chain = Chain("osaka", {CALLER: Account(0, 1, code), CALLEE: Account(0, 1)})
    top = chain.run(CALLER, b"\xaa\xbb\xcc\xdd\xee")
    precompiles = chain.execution.state.precompiles
    assert json.loads(four_byte_json(top, precompiles)) == {
        "0xaabbccdd-1": 1,
        "0x12345678-32": 2,
        "0x12345678-0": 2,
    }
