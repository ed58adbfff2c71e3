"""Blocks' worth of trouble: what once was executed otherwise than by the rules.

Each was found by executing generated blocks with execution-specs as well.
"""

import pytest

from nodeapi.chain.assembler import assemble
from nodeapi.evm.chain_config import LADDER
from tests.nodeapi.evm.frames import CONTRACT, call, new_state


@pytest.mark.parametrize("opcode", ["CREATE", "CREATE2"])
@pytest.mark.parametrize("fork", ["shanghai", "cancun", "prague", "osaka"])
@pytest.mark.parametrize(
    ("size", "fails"), [(49_152, False), (49_153, True), (2**256 - 1, True)]
)
def test_too_long_init_code_fails_the_frame_even_of_a_creator_without_money(
    fork, opcode, size, fails
):
    code = assemble(f"PUSH 7 PUSH {size} PUSH 0 PUSH 1 {opcode} STOP")
    frame = call(new_state(fork), code)
    assert frame.is_error is fails
    assert (frame.get_gas_remaining() == 0) is fails


def test_too_long_init_code_fails_the_frame_of_a_creator_with_money():
    state = new_state("shanghai")
    state.set_balance(CONTRACT, 5)
    frame = call(state, assemble("PUSH 49153 PUSH 0 PUSH 1 CREATE STOP"))
    assert frame.is_error
    assert state.get_nonce(CONTRACT) == 0


def test_init_code_may_have_any_length_before_shanghai():
    frame = call(new_state("paris"), assemble("PUSH 49153 PUSH 0 PUSH 0 CREATE STOP"))
    assert LADDER["paris"].max_init_code_size is None
    assert not frame.is_error
