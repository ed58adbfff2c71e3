"""Error texts of failures, compared with the stepping loop's and with geth's."""

import random
from hashlib import sha256

import pytest

from evm.chain_config import LADDER
from evm.opcodes import OPCODE_NAMES, OPCODES
from evm.precompiles import bn254
from evm.tracers.frames import CallFrame
from evm.tracers.watching import Watcher
from tests.evm.frames import CONTRACT, SENDER, call, new_state
from tests.evm.test_interpreter import WORDS, push
from tests.evm.tracers.stepper import CostChecker, stepped_state
from tests.support.executed import Account, Chain
from tests.support.precompile_inputs import bls_g2, bn_g2

HUGE = 2**256 - 1


def watched_failure(fork, code, **message):
    """Return the error text of a watched frame, None if it succeeded."""
    watcher = Watcher()
    state = new_state(fork, watcher)
    watcher.enter(CallFrame("CALL", SENDER, CONTRACT, 0, b"", 0, 0))
    prepare(state)
    frame = call(state, code, bytes(range(40)), **message)
    return None if frame.is_success else str(frame.error)


def stepped_failure(fork, code, **message):
    """Return the error text that the stepping loop reports for the same code."""
    checker = CostChecker()
    state = stepped_state(fork, checker)
    prepare(state)
    frame = call(state, code, bytes(range(40)), **message)
    if frame.is_success:
        return None
    # A frame's own failure is its last event.
    own = [entry for entry in checker.entries if entry["depth"] == 1]
    return own[-1]["error"] or checker.faults[-1]["error"]


def prepare(state):
    state.world.set_balance(CONTRACT, 10)
    state.world.set_storage(CONTRACT, 1, 7)


@pytest.mark.parametrize("fork", LADDER)
def test_failures_are_called_what_the_stepping_loop_calls_them(fork):
    choose, failed = random.Random(fork), 0
    for _ in range(175):
        opcode = choose.choice([*range(0x60), *range(0x80, 0x100)])
        taken = OPCODES[opcode].taken
        items = choose.choice([0, taken - 1, taken, taken, taken, 7])
        words = [*WORDS[:7], HUGE, 2**64 - 20, 2**63, 0x1FFFFFFFF0, 2**32]
        code = b"".join(push(choose.choice(words)) for _ in range(max(items, 0)))
        code += bytes([opcode])
        message = {
            "gas": choose.choice([1, 20, 120, 800, 2400, 3000, 40_000, 400_000]),
            "is_static": fork not in EARLY and choose.random() < 0.3,
        }
        expected = stepped_failure(fork, code, **message)
        found = watched_failure(fork, code, **message)
        assert found == expected, (OPCODE_NAMES[opcode], code.hex(), message)
        failed += expected is not None
    assert failed > 50


@pytest.mark.parametrize("fork", ["frontier", "osaka"])
def test_a_stack_overflow_is_reported_with_the_limit(fork):
    for opcode in (0x30, 0x58, 0x60, 0x80):
        code = b"\x60\x01" * 1024 + bytes([opcode])
        text = "stack limit reached 1024 (1023)"
        assert watched_failure(fork, code) == text
        # The stack is checked before the gas.
        assert watched_failure(fork, code, gas=3 * 1024) == text


EARLY = ("frontier", "homestead", "tangerine_whistle", "spurious_dragon")


def called(fork, callee, data=b"", gas=100_000, kind=0xF1, value=0, **accounts):
    """Return the frame of a call from a contract, at depth 1."""
    operands = [0, 0, len(data), 0, *([value] if kind in (0xF1, 0xF2) else [])]
    code = b"".join(
        push(int.from_bytes(data[i : i + 32].ljust(32, b"\0"), "big"))
        + push(i)
        + b"\x52"
        for i in range(0, len(data), 32)
    )
    code += b"".join(map(push, operands)) + push(int.from_bytes(callee, "big"))
    code += push(gas) + bytes([kind, 0])
    chain = Chain(fork, {CALLER: Account(ETHER, 1, code), **accounts.get("state", {})})
    (frame,) = chain.run(CALLER, gas=3_000_000).calls
    return frame


CALLER, CALLEE = b"\xaa" * 20, b"\xbb" * 20
ETHER = 10**18


def precompile(number):
    return number.to_bytes(20, "big")


BN_FIELD = bn254.FIELD.to_bytes(32, "big")
OUTSIDE = bn_g2().outside[0]
OUTSIDE_G2 = "g2 point is not on correct subgroup"
INFINITY = b"\xc0" + bytes(47)


def evaluation(commitment, y=bytes(32)):
    """Return the point evaluation's input, with the proof at infinity."""
    versioned_hash = b"\x01" + sha256(commitment).digest()[1:]
    return versioned_hash + bytes(32) + y + commitment + INFINITY


@pytest.mark.parametrize(
    ("fork", "number", "data", "text"),
    [
        ("byzantium", 6, b"\x01" * 64, "point is not on curve"),
        ("byzantium", 6, b"\xff" * 64, "invalid fp.Element encoding"),
        ("byzantium", 7, BN_FIELD + bytes(32), "invalid fp.Element encoding"),
        ("byzantium", 8, bytes(200), "out of gas"),
        ("istanbul", 8, bytes(63) + b"\x01" + bytes(128), "point is not on curve"),
        ("istanbul", 8, bytes(64) + OUTSIDE, "point is not in correct subgroup"),
        ("istanbul", 8, b"\x01", "bad elliptic curve pairing size"),
        ("istanbul", 9, b"\x01", "invalid input length"),
        ("istanbul", 9, bytes(212) + b"\x02", "invalid final flag"),
        ("istanbul", 9, b"\xff" * 213, "out of gas"),
        ("cancun", 10, b"\x01", "invalid input length"),
        ("cancun", 10, bytes(192), "mismatched versioned hash"),
        (
            "cancun",
            10,
            evaluation(INFINITY, y=b"\xff" * 32),
            "error verifying kzg proof: scalar is not canonical when interpreted as a "
            "big integer in big-endian",
        ),
        (
            "cancun",
            10,
            evaluation(INFINITY, y=bytes(31) + b"\x01"),
            "error verifying kzg proof: can't verify opening proof",
        ),
        *(
            ("cancun", 10, evaluation(point), f"error verifying kzg proof: {text}")
            for point, text in {
                bytes(48): "short buffer",
                b"\xe0" + bytes(47): "invalid point encoding",
                b"\xc0" + bytes(46) + b"\x01": "invalid infinity point encoding",
                b"\x9f" + b"\xff" * 47: "invalid fp.Element encoding",
                b"\x80" + bytes(46) + b"\x01": (
                    "invalid compressed coordinate: square root doesn't exist"
                ),
                b"\x80" + bytes(47): "invalid point: subgroup check failed",
            }.items()
        ),
        ("prague", 11, bytes(255), "invalid input length"),
        ("prague", 11, b"\x01" + bytes(255), "invalid field element top bytes"),
        (
            "prague",
            11,
            bytes(16) + b"\xff" * 48 + bytes(192),
            "invalid fp.Element encoding",
        ),
        ("prague", 11, bytes(63) + b"\x01" + bytes(192), "invalid point: not on curve"),
        (
            "prague",
            12,
            bytes(127) + b"\x02" + bytes(32),
            "g1 point is not on correct subgroup",
        ),
        ("prague", 14, bls_g2().outside[0] + bytes(32), OUTSIDE_G2),
        ("prague", 15, b"", "invalid input length"),
        ("prague", 15, bytes(128) + bls_g2().outside[0], OUTSIDE_G2),
        (
            "osaka",
            5,
            (1025).to_bytes(32, "big") + bytes(64),
            "one or more of base/exponent/modulus length exceeded 1024 bytes",
        ),
    ],
)
def test_precompiled_contracts_fail_with_geths_texts(fork, number, data, text):
    frame = called(fork, precompile(number), data)
    assert (frame.error, frame.gas_used, frame.output) == (text, 100_000, b"")


def test_a_refused_call_says_whether_depth_or_balance_was_it():
    frame = called("osaka", CALLEE, value=2 * ETHER)
    assert frame.error == "insufficient balance for transfer"
    assert (frame.gas, frame.gas_used) == (102_300, 0)


@pytest.mark.parametrize(
    ("fork", "code", "text"),
    [
        ("london", b"\xef", "invalid code: must not begin with 0xef"),
        ("homestead", bytes(100), "contract creation code storage out of gas"),
        ("osaka", bytes(24_577), "max code size exceeded: code size 24577 limit 24576"),
    ],
)
def test_code_that_may_not_be_stored_is_named(fork, code, text):
    # Returns bytes of memory, the first of which is the first byte of the code.
    init = push(code[0]) + b"\x60\x00\x53" + push(len(code)) + b"\x60\x00\xf3"
    gas = 60_000 if fork == "homestead" else 8_000_000
    top = Chain(fork, {}).run(None, init, gas=gas)
    assert top.error == text
    assert top.output == b""
