"""The interpreter loop, compared with py-evm's for every instruction."""

import gc
import random
import weakref

import pytest
from eth.exceptions import (
    FullStack,
    InsufficientStack,
    InvalidInstruction,
    InvalidJumpDestination,
    OutOfGas,
    WriteProtection,
)

from evm.chain_config import LADDER
from evm.computation import Frame
from evm.forks import FORKS
from tests.evm.frames import CONTRACT, call, new_state, stock_state

STOCK_FORKS = [
    fork.name
    for fork in FORKS
    if fork.name not in ("muir_glacier", "arrow_glacier", "gray_glacier", "osaka")
]
WORDS = [
    0,
    1,
    2,
    31,
    32,
    33,
    255,
    256,
    2**64,
    2**128 - 1,
    2**255 - 1,
    2**255,
    2**256 - 1,
    int.from_bytes(CONTRACT, "big"),
]


def push(value):
    data = value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")
    return bytes([0x5F + len(data)]) + data


def kind(error):
    """Return the py-evm class of an error. Our own error classes are subclasses of these."""
    kinds = (c for c in type(error).__mro__ if c.__module__ == "eth.exceptions")
    return next(kinds, None)


def number(topic):
    """Return a topic as a number, as in py-evm. Ours are bytes."""
    return int.from_bytes(topic, "big") if isinstance(topic, bytes) else topic


def observe(state, frame):
    changes = state._account_db.changes(clears_empty_accounts=False)
    return {
        "error": kind(frame._error),
        "output": frame.output,
        "gas": frame.get_gas_remaining(),
        "refund": frame.get_gas_refund(),
        "stack": None if frame.is_error else _stack(frame),
        "memory": None if frame.is_error else _memory(frame),
        "logs": [
            (address, [number(topic) for topic in topics], data)
            for address, topics, data in frame.get_log_entries()
        ],
        "deleted": sorted(frame.get_accounts_for_deletion()),
        "return_data": frame.return_data,
        "accounts": changes.accounts,
        "storage": changes.storage,
    }


def _stack(frame):
    items = frame.stack if isinstance(frame, Frame) else frame._stack.values
    return [v if isinstance(v, int) else int.from_bytes(v, "big") for v in items]


def _memory(frame):
    return bytes(frame.memory if isinstance(frame, Frame) else frame._memory._bytes)


def assert_same(fork, code, data=b"", **message):
    ours, theirs = new_state(fork), stock_state(fork)
    expected = observe(theirs, call(theirs, code, data, **message))
    actual = observe(ours, call(ours, code, data, **message))
    assert actual == expected, (fork, code.hex(), data.hex())


@pytest.mark.filterwarnings("ignore:SELFDESTRUCT")
@pytest.mark.parametrize("fork", STOCK_FORKS)
def test_every_opcode_does_what_py_evm_does(fork):
    choose = random.Random(fork)
    for opcode in range(256):
        words = WORDS[:7] if 0xF0 <= opcode <= 0xFA else WORDS[:9]
        operands = b"".join(push(choose.choice(words)) for _ in range(8))
        code = operands + bytes([opcode]) + b"\x5b\x58\x5a"
        assert_same(fork, code, bytes(range(40)))


@pytest.mark.parametrize("opcode", [*range(0x01, 0x0C), *range(0x10, 0x1E)])
def test_arithmetic_agrees_on_extreme_words(opcode):
    for a in WORDS:
        for b in WORDS:
            code = push(3) + push(b) + push(a) + bytes([opcode])
            assert_same("prague", code)


@pytest.mark.filterwarnings("ignore:SELFDESTRUCT")
@pytest.mark.parametrize("fork", ["frontier", "byzantium", "istanbul", "prague"])
def test_random_programs_end_the_same(fork):
    choose = random.Random(fork)
    likely = [0x50, 0x51, 0x52, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58, 0x5A, 0x5B, 0x5C]
    likely += [0x5D, 0x5E, 0x20, 0x35, 0x37, 0x39, 0x3E, 0xA0, 0xA2, 0xF1, 0xF0, 0xF5]
    likely += [0xF4, 0xFA, 0xFD, 0xF3, *range(0x80, 0x84), *range(0x90, 0x94)]
    for _ in range(125):
        code = b"".join(push(choose.choice(WORDS[:6])) for _ in range(6))
        for _ in range(40):
            kind = choose.random()
            if kind < 0.4:
                code += push(choose.choice([*WORDS[:7], choose.randrange(120)]))
            elif kind < 0.85:
                code += bytes([choose.choice(likely)])
            else:
                code += bytes([choose.randrange(256)])
        gas = choose.choice([100, 3000, 60_000, 400_000])
        assert_same(fork, code, choose.randbytes(50), gas=gas)


def test_storage_prices_agree_over_every_sequence_of_writes():
    values = [0, 1, 2]
    for fork in ("constantinople", "petersburg", "istanbul", "berlin", "london"):
        for original in values:
            for first in values:
                for second in values:
                    code = b"".join(
                        push(value) + push(5) + b"\x55" for value in (first, second)
                    )
                    ours, theirs = new_state(fork), stock_state(fork)
                    for state in (ours, theirs):
                        state.set_storage(CONTRACT, 5, original)
                    expected = observe(theirs, call(theirs, code))
                    assert observe(ours, call(ours, code)) == expected


@pytest.mark.parametrize("gas", [2299, 2300, 2301, 5006, 22_106])
def test_storage_writes_need_more_than_the_stipend(gas):
    assert_same("prague", push(1) + push(5) + b"\x55", gas=gas + 6)


def test_static_frames_may_not_write():
    for opcode in (0x55, 0x5D, 0xA0, 0xA4, 0xF0, 0xF5, 0xFF):
        state = new_state("prague")
        code = push(0) * 7 + bytes([opcode])
        assert isinstance(call(state, code, is_static=True).error, WriteProtection)


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (b"\x01", InsufficientStack),
        (b"\x81", InsufficientStack),
        (b"\x91", InsufficientStack),
        (b"\x50", InsufficientStack),
        (b"\x56", InsufficientStack),
        (b"\x57", InsufficientStack),
        (b"\x51", InsufficientStack),
        (b"\x5b\x60\x00\x80\x60\x00\x56", FullStack),
        (b"\x60\x01\x56", InvalidJumpDestination),
        (b"\x60\x04\x56\x60\x5b", InvalidInstruction),
        (b"\x7f" + b"\xff" * 32 + b"\x56", InvalidJumpDestination),
        (b"\x0c", InvalidInstruction),
        (b"\xfe", InvalidInstruction),
        (b"\x7f" + b"\xff" * 32 + b"\x51", OutOfGas),
    ],
)
def test_a_frame_fails_with_the_error_of_its_instruction(code, error):
    frame = call(new_state("prague"), code)
    assert kind(frame.error) is error
    assert frame.get_gas_remaining() == 0
    assert_same("prague", code)


def test_a_truncated_push_reads_zeros_and_stops():
    frame = call(new_state("prague"), b"\x61\x01")
    assert frame.stack == [0x0100]
    assert frame.get_gas_used() == 3


def test_a_replaced_opcode_is_called_as_it_is():
    seen = []
    base = LADDER["prague"]
    frames = base.base_state_class.computation_class
    original = frames.opcodes[0x56]

    def watched_jump(computation):
        seen.append(computation.code.program_counter)
        original(computation)

    watching = type(
        "Watching", (frames,), {"opcodes": {**frames.opcodes, 0x56: watched_jump}}
    )
    state = new_state("prague")
    state.computation_class = watching
    frame = call(state, bytes.fromhex("6004565b5b6001"))
    assert seen == [3]
    assert frame.stack == [1]
    call(new_state("prague"), bytes.fromhex("6004565b5b6001"))
    assert len(seen) == 1


def test_calls_nest_1024_deep():
    # Each frame increments slot 0 and calls the contract again.
    call_self = bytes.fromhex("6001600054016000556000808080803061c350 5a03f1")
    state = new_state("homestead")
    frame = call(state, call_self, gas=200_000_000)
    assert frame.is_success
    assert state.get_storage(CONTRACT, 0) == 1025


@pytest.mark.parametrize("ending", ["00", "60006000fd", "01", "fe", "600056", "f0"])
def test_a_frame_is_freed_when_its_call_ends(ending, monkeypatch):
    # Without input, the contract calls itself with input.
    code = bytes.fromhex("600160005236601b57 6000600060016000600030 5af100")
    code = code.ljust(0x1B, b"\x00") + bytes.fromhex("5b" + ending)
    state, frames = new_state("osaka"), []
    run_code = state.computation_class.run_code

    def noting(frame, table):
        frames.append(weakref.ref(frame))
        run_code(frame, table)

    monkeypatch.setattr(state.computation_class, "run_code", staticmethod(noting))
    gc.disable()
    try:
        top = call(state, code)
        assert [frame() is top for frame in frames] == [True, False]
        assert frames[1]() is None
    finally:
        gc.enable()
