"""Signed transactions to run in tests, and a state in which their sender has ether."""

from evm.executor import apply_transaction
from samples.signers import Signer
from tests.evm.frames import CONTRACT, ETHER, new_state

ALICE, BOB = Signer("alice"), Signer("bob")
STOP = b"\x00"
REVERT = bytes.fromhex("5f5ffd")


def state_of(fork):
    state = new_state(fork)
    state.world.set_balance(ALICE.address, 10 * ETHER)
    state.world.set_code(CONTRACT, STOP)
    return state


def signed(signer=ALICE, **fields):
    kind = fields.setdefault("type", 0)
    fields.setdefault("nonce", 0)
    fields.setdefault("gas", 100_000)
    fields.setdefault("to", CONTRACT)
    fields.setdefault("chain_id", 1)
    if kind < 2:
        fields.setdefault("gas_price", 10)
    else:
        fields.setdefault("max_fee_per_gas", 10)
        fields.setdefault("max_priority_fee_per_gas", 2)
    if kind == 3:
        fields.setdefault("max_fee_per_blob_gas", 1000)
        fields.setdefault("blob_versioned_hashes", [b"\x01" * 32])
    if kind == 4:
        fields.setdefault("authorization_list", [BOB.authorize(1, CONTRACT, 0)])
    if fields["chain_id"] is None:
        del fields["chain_id"]
    return signer.sign(fields)


def run(state, transaction):
    state.world.lock_changes()
    executed = apply_transaction(state, transaction, 3, transaction.gas)
    return executed.frame, executed.gas_used
