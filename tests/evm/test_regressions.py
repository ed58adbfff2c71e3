"""Regression tests: transactions that earlier versions executed wrongly.

Each error was found by comparing generated blocks with execution-specs.
"""

import pytest

from evm.chain_config import LADDER
from evm.effects import RIPEMD160
from evm.executor import apply_transaction
from samples.assembler import assemble
from samples.builder import ChainBuilder
from samples.schedules import from_genesis, make_genesis
from samples.signers import Signer, create_address
from tests.evm.frames import CONTRACT, ETHER, call, new_state

SIGNER = Signer("regressions")


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
    assert frame.is_success is not fails
    assert (frame.gas_remaining == 0) is fails


def test_too_long_init_code_fails_the_frame_of_a_creator_with_money():
    state = new_state("shanghai")
    state.world.set_balance(CONTRACT, 5)
    frame = call(state, assemble("PUSH 49153 PUSH 0 PUSH 1 CREATE STOP"))
    assert not frame.is_success
    assert state.get_nonce(CONTRACT) == 0


def test_init_code_may_have_any_length_before_shanghai():
    frame = call(new_state("paris"), assemble("PUSH 49153 PUSH 0 PUSH 0 CREATE STOP"))
    assert LADDER["paris"].max_init_code_size is None
    assert frame.is_success


def leave_ripemd160_empty(fork, value):
    """Run a transaction that fails after it has called RIPEMD-160's precompile.
    Return whether the precompile's account still exists."""
    state = new_state(fork)
    state.world.set_balance(SIGNER.address, ETHER)
    state.world.set_balance(CONTRACT, ETHER)
    state.world.touch_account(RIPEMD160)
    state.world.set_code(
        CONTRACT,
        assemble(
            f"PUSH 0 PUSH 0 PUSH 0 PUSH 0 PUSH {value} PUSH 3 PUSH 50000 CALL INVALID"
        ),
    )
    state.world.lock_changes()
    fields = {"nonce": 0, "gas": 200_000, "gas_price": 10, "to": CONTRACT}
    transaction = SIGNER.sign(fields)
    apply_transaction(state, transaction, 0, transaction.gas)
    return state.world.account_exists(RIPEMD160)


@pytest.mark.parametrize("fork", ["spurious_dragon", "berlin", "london"])
def test_empty_ripemd160_is_removed_even_when_the_transaction_that_called_it_fails(
    fork,
):
    assert not leave_ripemd160_empty(fork, value=0)


@pytest.mark.parametrize("fork", ["spurious_dragon", "berlin", "london"])
def test_ether_that_comes_back_from_ripemd160_does_not_remove_its_empty_account(fork):
    assert leave_ripemd160_empty(fork, value=1)


@pytest.mark.parametrize("fork", ["frontier", "petersburg", "shanghai", "osaka"])
def test_storage_alone_hinders_the_creation_of_a_contract(fork):
    child = create_address(SIGNER.address, 0)
    genesis = make_genesis(
        chain_id=1,
        first_blocks=from_genesis(fork),
        alloc={
            f"0x{SIGNER.address.hex()}": {"balance": hex(ETHER)},
            f"0x{child.hex()}": {
                "balance": "0x1",
                "storage": {f"0x{0:064x}": f"0x{7:064x}"},
            },
        },
    )
    chain = ChainBuilder(genesis)
    assert chain.deploy(SIGNER, assemble("STOP"), gas=60_000) == child
    chain.block()
    assert chain.outcomes[0].gas_used == 60_000
    assert chain.state.account(child).nonce == 0
    assert chain.state.storage(child, 0) == 7
