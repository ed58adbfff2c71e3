"""The stepping loop, compared with the plain one, and its costs with the charged gas."""

import random

import pytest

from evm.chain_config import LADDER
from tests.evm.frames import CONTRACT, call, new_state
from tests.evm.test_interpreter import WORDS, observe, push
from tests.evm.tracers.stepper import (
    CostChecker,
    stepped_state,
)

LIKELY = bytes.fromhex(
    "50515253545556575a5b5c5d5e20313537393b3c3e3fa0a2a4f1f0f5f4faf2fdf3ff"
    "808182839091929394"
)


def run_both(fork, code, data=b"", **message):
    """Run code in both loops, compare their results, and return the reported steps."""
    checker = CostChecker()
    plain, stepped = new_state(fork), stepped_state(fork, checker)
    for state in (plain, stepped):
        state.world.set_balance(CONTRACT, 10)
        state.world.set_storage(CONTRACT, 1, 7)
        state.world.set_storage(CONTRACT, 2, 7)
    expected = observe(plain, call(plain, code, data, **message))
    frame = call(stepped, code, data, **message)
    assert observe(stepped, frame) == expected, code.hex()
    checker.finish()
    if not frame.is_success:
        assert checker.faults or checker.entries[-1]["error"]
        return checker
    if checker.entries[-1]["depth"] == 1:
        assert checker.entries[-1]["refund"] == frame.transaction.effects.refund
    return checker


@pytest.mark.parametrize("fork", LADDER)
def test_every_opcode_costs_what_was_reported(fork):
    choose = random.Random(fork)
    checked = 0
    for opcode in range(256):
        words = WORDS[:7] if 0xF0 <= opcode <= 0xFA else WORDS[:9]
        operands = b"".join(push(choose.choice(words)) for _ in range(8))
        code = operands + bytes([opcode]) + b"\x5b\x58\x5a"
        checked += run_both(fork, code, bytes(range(40))).checked
    assert checked > 1250


@pytest.mark.parametrize("fork", LADDER)
def test_random_programs_cost_what_was_reported(fork):
    choose = random.Random(fork)
    for _ in range(40):
        code = b"".join(push(choose.choice(WORDS[:6])) for _ in range(6))
        for _ in range(40):
            kind = choose.random()
            if kind < 0.4:
                word = choose.choice([*WORDS[:7], WORDS[-1], choose.randrange(120)])
                code += push(word)
            elif kind < 0.9:
                code += bytes([choose.choice(LIKELY)])
            else:
                code += bytes([choose.randrange(256)])
        gas = choose.choice([100, 3000, 60_000, 400_000])
        run_both(fork, code, choose.randbytes(50), gas=gas)


@pytest.mark.parametrize(("left", "cost"), [(99, 100), (100, 3100), (3099, 3100)])
def test_the_second_read_of_extcodesize_is_no_constant_price(left, cost):
    # ADDRESS, EXTCODESIZE: geth reports the constant price if that is not paid.
    checker = run_both("amsterdam", bytes.fromhex("303b"), gas=2 + left)
    last = checker.entries[-1]
    assert (last["op"], last["cost"], last["error"]) == (
        "EXTCODESIZE",
        cost,
        "out of gas",
    )
