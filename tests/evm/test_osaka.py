import pytest

from evm.frame_errors import InvalidOpcode, StackUnderflow
from tests.evm.frames import call, new_state


@pytest.mark.parametrize(
    ("word", "zeros"),
    [
        (0, 256),
        (1, 255),
        (2**255, 0),
        (2**256 - 1, 0),
        (2**254, 1),
        (2**255 - 1, 1),
        (0xFF, 248),
    ],
)
def test_clz_counts_leading_zero_bits(word, zeros):
    code = b"\x7f" + word.to_bytes(32, "big") + b"\x1e"
    frame = call(new_state("osaka"), code)
    assert frame.stack == [zeros]
    assert frame.gas_used == 3 + 5


def test_clz_needs_an_operand_and_osaka():
    assert isinstance(call(new_state("osaka"), b"\x1e").error, StackUnderflow)
    frame = call(new_state("prague"), b"\x5f\x1e")
    assert isinstance(frame.error, InvalidOpcode)


def test_osaka_limits_are_data_of_the_fork():
    fork = new_state("osaka").fork
    assert fork.max_transaction_gas == 16_777_216
    assert fork.max_blobs_per_transaction == 6
    assert fork.max_block_size == 8_388_608


def test_the_address_of_p256_verify_is_warm():
    assert new_state("osaka").is_address_warm((0x100).to_bytes(20, "big"))
    assert not new_state("prague").is_address_warm((0x100).to_bytes(20, "big"))
