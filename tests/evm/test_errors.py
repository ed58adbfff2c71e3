import pytest

from evm.errors import InvalidBlock, InvalidTransaction
from tests.evm.test_headers import HEADER

WHERE = f"block 7 (0x{HEADER.hash.hex()}): "


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (InvalidBlock(HEADER, "gas used", 1, 2), "gas used: expected 1, got 2"),
        (
            InvalidBlock(HEADER, "logs bloom", b"\x01", None),
            "logs bloom: expected 0x01, got none",
        ),
        (InvalidBlock(HEADER, "size", reason="too large"), "size: too large"),
        (InvalidTransaction(3, "nonce is 1, not 2", HEADER), "transaction 3: nonce is"),
    ],
)
def test_message_is_one_line_naming_block_and_field(error, message):
    assert str(error).startswith(WHERE + message)
    assert "\n" not in str(error)
    assert (error.number, error.hash) == (7, HEADER.hash)


def test_transaction_learns_later_in_which_block_it_was():
    error = InvalidTransaction(0, "no")
    assert str(error) == "block: transaction 0: no"
    assert error.locate(HEADER) is error
    assert str(error) == WHERE + "transaction 0: no"
    assert error.index == 0
