"""Calls in each fork: their gas, kinds, depth and failures."""

from __future__ import annotations

import json

import pytest

from evm.chain_config import LADDER
from evm.delegations import DELEGATION_PREFIX
from tests.evm.frames import CONTRACT, call
from tests.evm.tracers.stepper import CostChecker, stepped_state
from tests.support.call_codes import (
    BYZANTIUM,
    CALL,
    CALLCODE,
    CALLEE,
    CALLER,
    DELEGATECALL,
    FORKS,
    GAS,
    NOBODY,
    REVERT,
    STATICCALL,
    call_to,
    creation,
    run,
    shown,
    since,
)
from tests.support.executed import ETHER, Account, Chain
from tests.support.random_calls import push

# Gas

PUSHES = 7 * 3
PRICES = {"frontier": 40, "tangerine_whistle": 700, "berlin": 2600, "amsterdam": 3000}


def price_of_transaction(fork: str) -> int:
    return 15_000 if fork == "amsterdam" else 21_000


def price_of_call(fork: str) -> int:
    return [gas for name, gas in PRICES.items() if since(fork, name)][-1]


@pytest.mark.parametrize("fork", FORKS)
def test_a_call_may_ask_for_more_than_there_is_from_tangerine_whistle_on(
    fork: str,
) -> None:
    top = run(fork, call_to(CALLEE, gas=push(10**8)))
    if fork in ("frontier", "homestead"):
        assert (top.error, top.calls) == ("out of gas", ())
        return
    left = 1_000_000 - price_of_transaction(fork) - PUSHES - price_of_call(fork)
    (frame,) = top.calls
    assert (frame.gas, frame.error) == (left - left // 64, None)


@pytest.mark.parametrize("fork", FORKS)
@pytest.mark.parametrize("kind", [CALL, CALLCODE])
def test_value_costs_and_brings_a_stipend(fork: str, kind: int) -> None:
    top = run(fork, call_to(CALLEE, kind, push(1000), value=1) + b"\x50")
    (frame,) = top.calls
    assert (frame.gas, frame.gas_used, frame.value) == (3300, 0, 1)
    # The stipend and the passed gas are returned.
    used = price_of_transaction(fork) + PUSHES + price_of_call(fork) - 2300 + 2
    used += 11_300 if fork == "amsterdam" else 9000
    assert top.gas_used == used


@pytest.mark.parametrize("fork", FORKS)
def test_an_account_that_is_new_costs(fork: str) -> None:
    cleared, is_amsterdam = LADDER[fork].clears_empty_accounts, fork == "amsterdam"
    for value in (0, 1):
        top = run(fork, call_to(NOBODY, gas=push(0), value=value))
        price = 120 * 1530 if is_amsterdam else 25_000
        new = price if value or not cleared else 0
        value_gas = (9000 if is_amsterdam else 6700) if value else 0
        used = price_of_transaction(fork) + PUSHES + price_of_call(fork)
        assert top.gas_used == used + new + value_gas
        (frame,) = top.calls
        assert frame.gas == (2300 if value else 0)


@pytest.mark.parametrize("fork", FORKS)
def test_a_creation_gets_all_or_all_but_a_64th(fork: str) -> None:
    top = run(fork, push(0) * 3 + b"\xf0")
    left = 1_000_000 - 21_000 - 9 - 32_000
    if fork == "amsterdam":
        left = 1_000_000 - 15_000 - 9 - 12_000 - 120 * 1530
    if since(fork, "tangerine_whistle"):
        left -= left // 64
    (frame,) = top.calls
    assert (frame.type, frame.gas, frame.gas_used) == ("CREATE", left, 0)


# Kinds


@pytest.mark.parametrize("fork", FORKS[1:])
def test_kinds_of_calls_have_their_caller_code_and_value(fork: str) -> None:
    # CALLEE makes another call, in CALLER's context or in its own.
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
    # CALLCODE is not a write, and neither is a call without value.
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


# Depth and reverts


@pytest.mark.parametrize("fork", ["homestead", "tangerine_whistle", "osaka"])
def test_depth_is_limited_to_1024_and_reported(fork: str) -> None:
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
    else:  # Each call gets 63/64 of the gas, which is used up before the depth limit.
        assert 200 < depth < 1024
        assert not frame.calls


def test_the_1025th_creation_is_refused_too() -> None:
    # The gas suffices in a fork where calls pass on all of it.
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


PLAIN, STOPPED = "out of gas", "out of gas: out of gas"
MEMORY = push(0x2000) + push(0) * 3
"""Ranges of a call with 8 KiB of output, which cost 896 gas."""
DELEGATE = b"\xdd" * 20


def calling(
    kind: int, value: int = 0, to: bytes = NOBODY, ranges: bytes = MEMORY
) -> bytes:
    amount = push(value) if kind in (CALL, CALLCODE) else b""
    return ranges + amount + push(int.from_bytes(to, "big")) + GAS + bytes([kind])


@pytest.mark.parametrize(
    ("fork", "code", "gas", "error"),
    [
        # An account's first access: 2500 above the constant part, from Berlin on.
        ("berlin", calling(STATICCALL), 2500, STOPPED),
        ("osaka", calling(STATICCALL), 2500, STOPPED),
        # Memory: CALL asks for its price alone, the others not before EIP-7702.
        ("cancun", calling(STATICCALL), 3000, PLAIN),
        ("cancun", calling(CALLCODE), 3000, PLAIN),
        ("cancun", calling(CALL), 3000, STOPPED),
        ("istanbul", calling(CALL), 1500, STOPPED),
        ("istanbul", calling(DELEGATECALL), 1500, PLAIN),
        ("osaka", calling(STATICCALL), 3000, STOPPED),
        ("osaka", calling(CALLCODE), 3000, STOPPED),
        # Value.
        ("cancun", calling(CALL, 1), 12_000, STOPPED),
        ("cancun", calling(CALLCODE, 1), 12_000, PLAIN),
        ("osaka", calling(CALLCODE, 1), 12_000, STOPPED),
        # A new account.
        ("cancun", calling(CALL, 1), 30_000, PLAIN),
        ("osaka", calling(CALL, 1), 30_000, STOPPED),
        # The delegate's access exceeds the gas, by itself, with memory and with value.
        ("osaka", calling(CALL, to=DELEGATE, ranges=push(0) * 4), 5000, STOPPED),
        ("osaka", calling(CALL, to=DELEGATE), 5500, STOPPED),
        ("osaka", calling(CALL, 1, to=DELEGATE), 14_000, STOPPED),
        # SELFDESTRUCT: the account, and a new one.
        ("cancun", push(0xEE) + b"\xff", 7000, STOPPED),
        ("cancun", push(0xEE) + b"\xff", 10_000, PLAIN),
    ],
)
def test_a_call_fails_at_geths_step(
    fork: str, code: bytes, gas: int, error: str
) -> None:
    # Observed in geth 1.17.2, which had imported the same calls with gas from 1 to 45,000.
    # geth 1.17.10 charges memory and value before the delegate's access (the last calls).
    accounts = {
        CALLER: Account(ETHER, 1, call_to(CALLEE, gas=push(gas))),
        CALLEE: Account(5, 1, code),
        DELEGATE: Account(5, 1, DELEGATION_PREFIX + NOBODY),
    }
    (found,) = Chain(fork, accounts).run(CALLER).calls
    assert (found.error, found.gas_used) == (error, gas)
    seen = CostChecker()
    state = stepped_state(fork, seen)
    state.world.set_balance(CONTRACT, 10)
    state.world.set_code(DELEGATE, DELEGATION_PREFIX + NOBODY)
    call(state, code, gas=gas)
    assert seen.entries[-1]["error"] == error
