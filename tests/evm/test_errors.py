import pytest

from evm.errors import InvalidBlock, InvalidTransaction
from tests.evm.test_headers import HEADER

HASH = b"\x11" * 32
WHERE = f"block 7 (0x{HEADER.hash.hex()}): "


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (InvalidBlock(HEADER, "size", "too large"), "size: too large"),
        (
            InvalidTransaction(3, HASH, "no", is_outdated=False).locate(HEADER),
            f"transaction 3: could not apply tx 3 [0x{HASH.hex()}]: no",
        ),
    ],
)
def test_message_is_one_line_naming_block_and_field(error, message):
    assert str(error).startswith(WHERE + message)
    assert "\n" not in str(error)
    assert (error.number, error.hash) == (7, HEADER.hash)


def test_transaction_learns_later_in_which_block_it_was():
    error = InvalidTransaction(0, HASH, "no", is_outdated=True)
    assert str(error).startswith("block: transaction 0: could not apply tx 0 [0x")
    assert error.locate(HEADER) is error
    assert str(error).startswith(WHERE + "transaction 0: could not")
    assert (error.index, error.text, error.is_outdated) == (0, "no", True)
