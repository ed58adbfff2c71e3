"""The interpreter loop, compared with py-evm's for every instruction."""

import gc
import random
import weakref

import pytest

from evm import frame_errors as errors
from evm.chain_config import LADDER
from evm.frame import Frame
from evm.message_call import MessageCall
from tests.evm.frames import CONTRACT, call, new_state, stock_state
from tests.support.py_evm import FORKS

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


def observe(state, frame):
    """Return what a call did. The frame may be py-evm's."""
    changes = state.world.changes(clears_empty_accounts=False)
    read = _ours if isinstance(frame, Frame) else _theirs
    return {
        **read(frame),
        "output": frame.output,
        "return_data": frame.return_data,
        "accounts": changes.accounts,
        "storage": changes.storage,
    }


def _ours(frame):
    effects, is_success = frame.transaction.effects, frame.is_success
    return {
        "is_success": is_success,
        "gas": frame.gas_remaining,
        "refund": effects.refund,
        "stack": frame.stack if is_success else None,
        "memory": bytes(frame.memory) if is_success else None,
        "logs": effects.logs,
        "deleted": sorted(effects.destroyed),
    }


def _theirs(frame):
    is_success, deleted = frame.is_success, set(frame.get_accounts_for_deletion())
    words = [
        v if isinstance(v, int) else int.from_bytes(v) for v in frame._stack.values
    ]
    has_refund = LADDER[frame.state.fork_name].prices.selfdestruct_refund > 0
    return {
        "is_success": is_success,
        "gas": frame.get_gas_remaining(),
        "refund": frame.get_gas_refund() + 24_000 * len(deleted) * has_refund,
        "stack": words if is_success else None,
        "memory": bytes(frame._memory._bytes) if is_success else None,
        "logs": [
            (address, tuple(topic.to_bytes(32, "big") for topic in topics), data)
            for address, topics, data in frame.get_log_entries()
        ],
        "deleted": sorted(deleted),
    }


def assert_same(fork, code, data=b"", **message):
    ours, theirs = new_state(fork), stock_state(fork)
    expected, actual = (call(state, code, data, **message) for state in (theirs, ours))
    assert observe(ours, actual) == observe(theirs, expected), (fork, code.hex())


@pytest.mark.filterwarnings("ignore:SELFDESTRUCT")
@pytest.mark.parametrize("fork", FORKS)
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
                        state.world.set_storage(CONTRACT, 5, original)
                    expected = observe(theirs, call(theirs, code))
                    assert observe(ours, call(ours, code)) == expected


@pytest.mark.parametrize("gas", [2299, 2300, 2301, 5006, 22_106])
def test_storage_writes_need_more_than_the_stipend(gas):
    assert_same("prague", push(1) + push(5) + b"\x55", gas=gas + 6)


@pytest.mark.filterwarnings("ignore:SELFDESTRUCT")
def test_static_frames_may_not_write():
    for opcode in (0x55, 0x5D, 0xA0, 0xA4, 0xF0, 0xF5, 0xFF):
        code = push(0) * 7 + bytes([opcode])
        frame = call(new_state("prague"), code, is_static=True)
        assert str(frame.error).endswith("write protection")
        assert_same("prague", code, is_static=True)


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (b"\x01", errors.StackUnderflow),
        (b"\x81", errors.StackUnderflow),
        (b"\x91", errors.StackUnderflow),
        (b"\x50", errors.StackUnderflow),
        (b"\x56", errors.StackUnderflow),
        (b"\x57", errors.StackUnderflow),
        (b"\x51", errors.StackUnderflow),
        (b"\x5b\x60\x00\x80\x60\x00\x56", errors.StackOverflow),
        (b"\x60\x01\x56", errors.InvalidJump),
        (b"\x60\x04\x56\x60\x5b", errors.InvalidJump),
        (b"\x7f" + b"\xff" * 32 + b"\x56", errors.InvalidJump),
        (b"\x0c", errors.InvalidOpcode),
        (b"\xfe", errors.InvalidOpcode),
        (b"\x7f" + b"\xff" * 32 + b"\x51", errors.GasOverflow),
    ],
)
def test_a_frame_fails_with_the_error_of_its_instruction(code, error):
    frame = call(new_state("prague"), code)
    assert type(frame.error) is error
    assert frame.gas_remaining == 0
    assert_same("prague", code)


def test_a_truncated_push_reads_zeros_and_stops():
    frame = call(new_state("prague"), b"\x61\x01")
    assert frame.stack == [0x0100]
    assert frame.gas_used == 3


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
    run_code = MessageCall.run_code

    def noting(frame):
        frames.append(weakref.ref(frame))
        run_code(frame)

    monkeypatch.setattr(MessageCall, "run_code", noting)
    gc.disable()
    try:
        top = call(state, code)
        assert [frame() is top for frame in frames] == [True, False]
        assert frames[1]() is None
    finally:
        gc.enable()
