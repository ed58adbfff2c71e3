"""What calls and creations get, how they end, and what is said of it, fork by fork."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nodeapi.evm.chain_config import LADDER
from nodeapi.tracers.call import CallConfig, call_json
from nodeapi.tracers.flat_call import FlatCallConfig, Place, flat_call_json
from nodeapi.tracers.four_byte import four_byte_json
from nodeapi.tracers.frames import CallFrame
from nodeapi.tracers.revert_reason import revert_reason
from tests.support.executed import ETHER, Account, Chain
from tests.support.random_calls import push

CALLER, CALLEE, NOBODY = b"\xaa" * 20, b"\xbb" * 20, b"\xee" * 20
CALL, CALLCODE, DELEGATECALL, STATICCALL = 0xF1, 0xF2, 0xF4, 0xFA
FORKS = list(LADDER)
BYZANTIUM = FORKS[FORKS.index("byzantium") :]
PLACE = Place(bytes(32), 1, bytes(32), 0)
REVERT = push(0) * 2 + b"\xfd"
GAS = b"\x5a"


def since(fork: str, name: str) -> bool:
    return FORKS.index(fork) >= FORKS.index(name)


def call_to(
    address: bytes, kind: int = CALL, gas: bytes = GAS, value: int = 0, size: int = 0
) -> bytes:
    """Return code that calls, leaving what came of it; gas: code that says how much."""
    amount = push(value) if kind in (CALL, CALLCODE) else b""
    ranges = push(0) * 2 + push(size) + push(0)
    return ranges + amount + push(int.from_bytes(address, "big")) + gas + bytes([kind])


def run(fork: str, code: bytes, callee: bytes = b"", **options: Any) -> CallFrame:
    accounts = {CALLER: Account(ETHER, 1, code), CALLEE: Account(5, 1, callee)}
    return Chain(fork, accounts).run(CALLER, **options)


def shown(top: CallFrame, **config: bool) -> Any:
    return json.loads(call_json(top, CallConfig(**config)))


def flat(top: CallFrame, precompiles: Any = (), **config: bool) -> Any:
    return json.loads(flat_call_json(top, FlatCallConfig(**config), precompiles, PLACE))


# Gas

PUSHES = 7 * 3
PRICES = {"frontier": 40, "tangerine_whistle": 700, "berlin": 2600}


def price_of_call(fork: str) -> int:
    return [gas for name, gas in PRICES.items() if since(fork, name)][-1]


@pytest.mark.parametrize("fork", FORKS)
def test_a_call_may_ask_for_more_than_there_is_from_tangerine_whistle_on(
    fork: str,
) -> None:
    top = run(fork, call_to(CALLEE, gas=push(10**8)))
    if fork in ("frontier", "homestead"):
        assert (top.error, top.calls) == ("out of gas", [])
        return
    left = 1_000_000 - 21_000 - PUSHES - price_of_call(fork)
    (frame,) = top.calls
    assert (frame.gas, frame.error) == (left - left // 64, None)


@pytest.mark.parametrize("fork", FORKS)
@pytest.mark.parametrize("kind", [CALL, CALLCODE])
def test_value_costs_and_brings_a_stipend(fork: str, kind: int) -> None:
    top = run(fork, call_to(CALLEE, kind, push(1000), value=1) + b"\x50")
    (frame,) = top.calls
    assert (frame.gas, frame.gas_used, frame.value) == (3300, 0, 1)
    # The stipend and the gas that was given come back.
    used = 21_000 + PUSHES + price_of_call(fork) + 9000 - 2300 + 2
    assert top.gas_used == used


@pytest.mark.parametrize("fork", FORKS)
def test_an_account_that_is_new_costs(fork: str) -> None:
    cleared = LADDER[fork].clears_empty_accounts
    for value in (0, 1):
        top = run(fork, call_to(NOBODY, gas=push(0), value=value))
        new = 25_000 if value or not cleared else 0
        value_gas = 9000 - 2300 if value else 0
        assert top.gas_used == 21_000 + PUSHES + price_of_call(fork) + new + value_gas
        (frame,) = top.calls
        assert frame.gas == (2300 if value else 0)


@pytest.mark.parametrize("fork", FORKS)
def test_a_creation_gets_all_or_all_but_a_64th(fork: str) -> None:
    top = run(fork, push(0) * 3 + b"\xf0")
    left = 1_000_000 - 21_000 - 9 - 32_000
    if since(fork, "tangerine_whistle"):
        left -= left // 64
    if since(fork, "shanghai"):
        assert LADDER[fork].max_init_code_size == 49_152
    (frame,) = top.calls
    assert (frame.type, frame.gas, frame.gas_used) == ("CREATE", left, 0)


# Kinds


@pytest.mark.parametrize("fork", FORKS[1:])
def test_kinds_of_calls_say_who_calls_whom_with_what(fork: str) -> None:
    # What CALLEE runs in CALLER's place, or in its own, calls on.
    inner = call_to(NOBODY, CALLCODE, gas=push(0)) + call_to(
        NOBODY, DELEGATECALL, gas=push(0)
    )
    code = call_to(CALLEE, CALLCODE, push(9**6), 3) + call_to(
        CALLEE, DELEGATECALL, push(9**6)
    )
    top = run(fork, code, inner, gas=3_000_000, value=2)
    code_call, delegate_call = shown(top)["calls"]
    caller, callee, nobody = (f"0x{a.hex()}" for a in (CALLER, CALLEE, NOBODY))
    for found, kind, value in (
        (code_call, "CALLCODE", "0x3"),
        (delegate_call, "DELEGATECALL", "0x2"),
    ):
        assert found["type"] == kind
        assert (found["from"], found["to"], found["value"]) == (caller, callee, value)
        on, delegated = found["calls"]
        assert (on["from"], on["to"], on["value"]) == (caller, nobody, "0x0")
        assert (delegated["from"], delegated["to"]) == (caller, nobody)
        assert delegated["value"] == value


@pytest.mark.parametrize("fork", BYZANTIUM)
def test_a_static_call_has_no_value_and_may_write_nothing(fork: str) -> None:
    wrapped, plain = "out of gas: write protection", "write protection"
    writes = {
        push(1) + push(0) + b"\x55": wrapped,
        push(0) * 3 + b"\xf0": wrapped,
        push(0) + b"\xff": wrapped,
        call_to(NOBODY, value=1): wrapped,
        push(0) * 2 + b"\xa0": plain,
        push(0) * 6 + b"\xa4": plain,
    }
    if since(fork, "constantinople"):
        writes[push(0) * 4 + b"\xf5"] = wrapped
    if since(fork, "cancun"):
        writes[push(0) * 2 + b"\x5d"] = plain
    for write, error in writes.items():
        top = run(fork, call_to(CALLEE, STATICCALL, push(100_000)), write)
        (found,) = shown(top)["calls"]
        assert "value" not in found
        assert (found["error"], found["gasUsed"]) == (error, hex(100_000))
        assert "calls" not in found
    # A call in its place is no write, nor is one without value.
    for harmless in (call_to(NOBODY, CALLCODE, value=1), call_to(NOBODY)):
        top = run(fork, call_to(CALLEE, STATICCALL, push(100_000)), harmless)
        assert top.calls[0].error is None


def test_too_little_constant_gas_comes_before_a_write() -> None:
    code = push(0) * 2 + b"\xa0"
    top = run("osaka", call_to(CALLEE, STATICCALL, push(5)), code)
    assert top.calls[0].error == "out of gas"
    value = call_to(NOBODY, gas=push(0), value=1)
    top = run("osaka", call_to(CALLEE, STATICCALL, push(PUSHES + 99)), value)
    assert top.calls[0].error == "out of gas"
    top = run("osaka", call_to(CALLEE, STATICCALL, push(PUSHES + 100)), value)
    assert top.calls[0].error == "out of gas: write protection"


# Creations

ONE_BYTE = push(1) + push(0) + b"\xf3"
"""Returns a byte of memory: the code 00."""


def creation(init: bytes, kind: int = 0xF0, value: int = 0) -> bytes:
    assert len(init) <= 32
    salt = push(0) if kind == 0xF5 else b""
    word = push(int.from_bytes(init.ljust(32, b"\0"), "big"))
    return (
        word
        + push(0)
        + b"\x52"
        + salt
        + push(len(init))
        + push(0)
        + push(value)
        + bytes([kind])
    )


@pytest.mark.parametrize("fork", FORKS)
def test_code_that_can_not_be_paid_for_was_no_error_once(fork: str) -> None:
    # 200 gas a byte: 16 KiB can't be paid for.
    init = push(2**14) + push(0) + b"\xf3"
    top = run(fork, creation(init))
    (found,) = shown(top)["calls"]
    if fork == "frontier":
        assert "error" not in found
        assert found["output"] == "0x" + "00" * 2**14
        assert "to" in found
        assert int(found["gasUsed"], 16) < 3000
        return
    assert found["error"] == "contract creation code storage out of gas"
    assert found["gasUsed"] == found["gas"]
    assert not found.keys() & {"to", "output", "revertReason"}
    (_, entry) = flat(top)
    assert "result" not in entry
    (_, entry) = flat(top, convert_parity_errors=True)
    assert entry["error"] == "Out of gas"


@pytest.mark.parametrize("fork", FORKS)
def test_a_creator_without_nonces_left_creates_nothing(fork: str) -> None:
    chain = Chain(fork, {CALLER: Account(ETHER, 2**64 - 1, creation(ONE_BYTE))})
    (frame,) = chain.run(CALLER).calls
    assert (frame.error, frame.gas_used) == ("nonce uint64 overflow", 0)
    assert "to" not in shown(frame)


@pytest.mark.parametrize("fork", BYZANTIUM)
def test_a_creation_that_reverts_has_its_data_and_no_address(fork: str) -> None:
    init = push(32) + push(0) + b"\xfd"
    top = run(fork, creation(init))
    (found,) = shown(top)["calls"]
    assert (found["error"], found["output"]) == ("execution reverted", "0x" + "00" * 32)
    assert "to" not in found
    for config in ({}, {"convert_parity_errors": True}):
        (_, entry) = flat(top, **config)
        assert entry["error"] == ("Reverted" if config else "execution reverted")
        assert entry["result"].keys() == {"code", "gasUsed"}
        assert entry["action"]["creationMethod"] == "create"


def test_code_is_looked_at_before_it_is_paid_for() -> None:
    # London: 0xef first, then the gas, then the size.
    init = push(0xEF) + push(0) + b"\x53" + push(2**14) + push(0) + b"\xf3"
    (frame,) = run("london", creation(init)).calls
    assert frame.error == "invalid code: must not begin with 0xef"
    (frame,) = run("berlin", creation(init)).calls
    assert frame.error == "contract creation code storage out of gas"


@pytest.mark.parametrize("fork", ["constantinople", "istanbul", "shanghai", "osaka"])
def test_create2_is_told_by_its_name(fork: str) -> None:
    top = run(fork, creation(ONE_BYTE, 0xF5, value=3))
    (found,) = shown(top)["calls"]
    assert (found["type"], found["value"], found["output"]) == (
        "CREATE2",
        "0x3",
        "0x00",
    )
    (_, entry) = flat(top)
    assert entry["action"]["creationMethod"] == "create2"
    assert entry["result"]["code"] == "0x00"


# Depth and reverts


@pytest.mark.parametrize("fork", ["homestead", "tangerine_whistle", "osaka"])
def test_depth_is_limited_to_1024_and_told(fork: str) -> None:
    gas = push(1000) + GAS + b"\x03" if fork == "homestead" else GAS
    code = call_to(CALLER, gas=gas) + b"\x00"
    top = run(fork, code, gas=16_000_000)
    depth, frame = 0, top
    while frame.calls:
        (frame,) = frame.calls
        assert frame.depth == depth + 1
        depth = frame.depth
    if fork == "homestead":
        assert (depth, frame.error) == (1025, "max call depth exceeded")
        assert (frame.gas_used, frame.input) == (0, b"")
    else:  # All but a 64th, again and again: the gas gives out before.
        assert 200 < depth < 1024
        assert frame.calls == []


def test_the_1025th_creation_is_refused_too() -> None:
    # With enough gas, in a fork that gives all of it on.
    code = creation(b"") + b"\x50" + call_to(CALLER, gas=push(60_000) + GAS + b"\x03")
    frame = run("homestead", code, gas=200_000_000)
    depths = []
    while frame.calls:
        refused = [c for c in frame.calls if c.error == "max call depth exceeded"]
        depths += [(c.type, c.depth, c.gas_used) for c in refused]
        frame = frame.calls[-1]
    assert ("CREATE", 1025, 0) in depths
    assert ("CALL", 1025, 0) in depths


def test_a_reverted_call_takes_the_logs_below_it_along() -> None:
    log = push(0) * 2 + b"\xa0"
    third = log
    second = log + call_to(b"\xc1" * 20, gas=push(50_000)) + REVERT
    first = log + call_to(CALLEE, gas=push(200_000)) + log
    accounts = {
        CALLER: Account(0, 1, first),
        CALLEE: Account(0, 1, second),
        b"\xc1" * 20: Account(0, 1, third),
    }
    chain = Chain("osaka", accounts)
    for start in (0, 2):
        top = shown(chain.run(CALLER), with_log=True)
        (reverted,) = top["calls"]
        (below,) = reverted["calls"]
        assert "logs" not in reverted
        assert "logs" not in below
        assert "error" not in below
        places = [(log["index"], log["position"]) for log in top["logs"]]
        assert places == [(hex(start), "0x0"), (hex(start + 1), "0x1")]
    assert "logs" not in json.dumps(shown(chain.run(CALLER)))


# What is said of reverts

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
        # An offset of 0: the string's length is the offset itself.
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
        # These stay: geth compares the whole text.
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
        # Whether there is a result goes by the text that was not converted.
        has_result = error == "execution reverted"
        assert ("result" in plain, "result" in entry) == (has_result, has_result)


def test_precompiled_contracts_are_hidden_where_they_are_called() -> None:
    identity = (4).to_bytes(20, "big")
    kinds = (CALL, CALLCODE, DELEGATECALL, STATICCALL)
    code = b"".join(call_to(identity, kind) + b"\x50" for kind in kinds)
    code += call_to(NOBODY)
    chain = Chain("osaka", {CALLER: Account(0, 1, code)})
    top = chain.run(CALLER)
    precompiles = chain.execution.state.computation_class.get_precompiles()
    assert len(shown(top)["calls"]) == 5
    entries = flat(top, precompiles)
    assert [entry["traceAddress"] for entry in entries] == [[], [0], [1], [2]]
    assert [entry["subtraces"] for entry in entries] == [3, 0, 0, 0]
    kinds_left = [entry["action"]["callType"] for entry in entries]
    assert kinds_left == ["call", "callcode", "delegatecall", "call"]
    assert len(flat(top, precompiles, include_precompiles=True)) == 6
    # The transaction's own call is shown whatever it calls.
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
    precompiles = chain.execution.state.computation_class.get_precompiles()
    assert json.loads(four_byte_json(top, precompiles)) == {
        "0xaabbccdd-1": 1,
        "0x12345678-32": 2,
        "0x12345678-0": 2,
    }
