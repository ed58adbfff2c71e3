"""Which accounts a block of Amsterdam loads, and so has in its access list (EIP-7928)."""

import pytest

from evm.delegations import DELEGATION_PREFIX
from evm.frame_errors import OutOfGas
from tests.evm.frames import CONTRACT, call, new_state

TARGET, DELEGATE = b"\x42" * 20, b"\x43" * 20
RANGES = "5f 5f 5f 5f"
PUSHED = 4 * 2 + 2 * 3
"""Gas of the ranges, the address and the gas limit."""


@pytest.mark.parametrize("is_enough", [False, True])
@pytest.mark.parametrize(
    ("opcode", "price"), [("f1", 3000 + 11_300), ("f2", 3000 + 11_300), ("f4", 3000)]
)
def test_a_called_account_is_loaded_once_access_and_value_are_paid(
    opcode: str, price: int, is_enough: bool
) -> None:
    value = "" if opcode == "f4" else "60 01"
    code = f"{RANGES} {value} 73 {TARGET.hex()} 61 ffff {opcode}"
    state = new_state("amsterdam")
    state.world.set_balance(CONTRACT, 1)
    paid = PUSHED + (3 if value else 0) + price
    frame = call(state, bytes.fromhex(code), gas=paid - 1 + is_enough)
    assert isinstance(frame.error, OutOfGas) == (not is_enough)
    assert (TARGET in dict(state.world.loaded())) == is_enough


@pytest.mark.parametrize("is_enough", [False, True])
@pytest.mark.parametrize("opcode", ["f1", "f2"])
def test_a_delegate_is_loaded_once_everything_else_is_paid(
    opcode: str, is_enough: bool
) -> None:
    state = new_state("amsterdam")
    state.world.set_code(TARGET, DELEGATION_PREFIX + DELEGATE)
    state.world.set_balance(CONTRACT, 1)
    paid = PUSHED + 3 + 3000 + 11_300 + 3000
    code = f"{RANGES} 60 01 73 {TARGET.hex()} 61 ffff {opcode}"
    call(state, bytes.fromhex(code), gas=paid - 1 + is_enough)
    loaded = dict(state.world.loaded())
    assert TARGET in loaded
    assert (DELEGATE in loaded) == is_enough
