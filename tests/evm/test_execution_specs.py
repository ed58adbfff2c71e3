"""Recorded transactions of every fork against the execution specification's answers."""

import json
from pathlib import Path

import pytest

from evm.chain_config import LADDER
from evm.changes import AccountValue, Changes
from evm.context import BlockContext
from evm.errors import InvalidTransaction
from evm.executor import apply_transaction
from evm.signatures import keccak
from evm.state import State
from evm.transactions import decode_transaction
from evm.world import World
from nodeapi.chain.memory_state import MemoryState

VECTORS = Path(__file__).parents[1] / "vectors/execution_specs/transactions.json"
CASES = json.loads(VECTORS.read_text())


def state_before(accounts):
    changes = Changes()
    for text, account in accounts.items():
        address, code = bytes.fromhex(text), bytes.fromhex(account["code"])
        code_hash = keccak(code)
        changes.accounts[address] = AccountValue(
            account["nonce"], int(account["balance"]), code_hash, None
        )
        if code:
            changes.codes[code_hash] = code
        if account["storage"]:
            changes.storage[address] = {
                int(slot): int(value) for slot, value in account["storage"].items()
            }
    state = MemoryState()
    state.apply(changes)
    return state


def block_context():
    return BlockContext(
        coinbase=b"\xcc" * 20,
        timestamp=1_700_000_000,
        number=500,
        difficulty=131_072,
        mix_hash=b"\x05" * 32,
        gas_limit=30_000_000,
        ancestor_hashes=[bytes([n]) * 32 for n in range(255, 0, -1)],
        chain_id=1,
        base_fee=7,
        excess_blob_gas=20_000_000,
    )


def run(case):
    fork = LADDER[case["fork"]]
    state = state_before(case["pre"])
    world = World(state)
    executing = State(world, block_context(), fork)
    gas, logs = [], []
    for index, raw in enumerate(case["transactions"]):
        world.lock_changes()
        transaction = decode_transaction(bytes.fromhex(raw))
        try:
            executed = apply_transaction(executing, transaction, index, transaction.gas)
        except InvalidTransaction:
            return [*gas, "invalid"], [*logs, []], None
        gas.append(executed.gas_used)
        logs.append(
            [
                [
                    address.hex(),
                    [hex(int.from_bytes(topic)) for topic in topics],
                    data.hex(),
                ]
                for address, topics, data in executed.frame.transaction.effects.logs
            ]
        )
    changes = world.changes(clears_empty_accounts=fork.clears_empty_accounts)
    return gas, logs, state.apply(changes).hex()


@pytest.mark.parametrize("index", range(len(CASES)))
def test_transactions_do_what_the_specification_does(index):
    case = CASES[index]
    assert run(case) == (case["gas_used"], case["logs"], case["state_root"])


def test_every_fork_that_the_specification_has_is_covered():
    left_out = {"constantinople", "muir_glacier", "arrow_glacier", "gray_glacier"}
    # geth's blocks cover it: tests/conformance/test_amsterdam.py
    left_out |= {"amsterdam"}
    assert {case["fork"] for case in CASES} == set(LADDER) - left_out
