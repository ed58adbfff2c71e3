"""stateDiff contains exactly the changes of a transaction."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from evm.chain_config import LADDER
from evm.errors import InvalidTransaction
from evm.tracers.derived import replay_derivation
from evm.tracers.state_diff import state_diff_json
from evm.tracers.touched import EMPTY, TouchedAccount
from evm.world import Account
from tests.evm.tracers.test_records import codes_of, snapshot
from tests.support.executed import COINBASE, SENDER, Chain
from tests.support.random_calls import random_accounts, random_transaction

DIFF = replay_derivation(state_diff=True)
ADDRESS = b"\x07" * 20
NAME = "0x" + "07" * 20
SLOTS = [(1, 0, 5), (2, 6, 0), (3, 4, 4)]


def word(value: int) -> str:
    return f"0x{value:064x}"


def diff(before: Account, after: Account, slots: Any = ()) -> Any:
    touched = [TouchedAccount(ADDRESS, before, after, slots)]
    text = state_diff_json(touched, lambda code_hash: code_hash.hex()[:4])
    return json.loads(text)


def test_changed_values_are_pairs_and_the_others_equal_signs() -> None:
    code_hash: Any = b"\xab" * 32
    before, after = Account(1, 16, EMPTY.code_hash), Account(2, 16, code_hash)
    assert diff(before, after, SLOTS) == {
        NAME: {
            "balance": "=",
            "code": {"*": {"from": "0x", "to": "0xabab"}},
            "nonce": {"*": {"from": "0x1", "to": "0x2"}},
            "storage": {
                word(1): {"*": {"from": word(0), "to": word(5)}},
                word(2): {"*": {"from": word(6), "to": word(0)}},
            },
        }
    }
    assert diff(before, before._replace(balance=15))[NAME] == {
        "balance": {"*": {"from": "0x10", "to": "0xf"}},
        "code": "=",
        "nonce": "=",
        "storage": {},
    }


@pytest.mark.parametrize("sign", ["+", "-"])
def test_new_and_removed_accounts_have_one_side(sign: str) -> None:
    full: Any = Account(1, 16, b"\xab" * 32)
    slots = [(1, 0, 5)] if sign == "+" else [(1, 5, 0)]
    sides = (EMPTY, full) if sign == "+" else (full, EMPTY)
    assert diff(*sides, slots) == {
        NAME: {
            "balance": {sign: "0x10"},
            "code": {sign: "0xabab"},
            "nonce": {sign: "0x1"},
            "storage": {word(1): {sign: word(5)}},
        }
    }


def test_accounts_that_were_only_read_are_left_out() -> None:
    full = Account(1, 16, EMPTY.code_hash)
    assert diff(full, full, [(3, 4, 4)]) == {}
    assert diff(EMPTY, EMPTY) == {}


def moved(state: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Apply changes to a state, after a check of their values before."""
    state = json.loads(json.dumps(state))
    for address, change in changes.items():
        signs = {
            sign
            for member in ("balance", "code", "nonce")
            for sign in (change[member] if change[member] != "=" else ())
        }
        if signs == {"-"}:
            account = state.pop(address)
            assert change["balance"]["-"] == account["balance"]
            assert change["code"]["-"] == account["code"]
            assert int(change["nonce"]["-"], 16) == account["nonce"]
            for slot, value in change["storage"].items():
                assert account["storage"][slot] == value["-"]
            continue
        if signs == {"+"}:
            assert address not in state
            state[address] = {
                "balance": change["balance"]["+"],
                "code": change["code"]["+"],
                "nonce": int(change["nonce"]["+"], 16),
                "storage": {s: v["+"] for s, v in change["storage"].items()},
            }
            continue
        assert signs <= {"*"}
        account = state[address]
        for member in ("balance", "code", "nonce"):
            if change[member] == "=":
                continue
            pair = change[member]["*"]
            if member == "nonce":
                pair = {side: int(value, 16) for side, value in pair.items()}
            assert pair["from"] == account[member] != pair["to"]
            account[member] = pair["to"]
        for slot, value in change["storage"].items():
            pair = value["*"]
            assert account["storage"].pop(slot, word(0)) == pair["from"] != pair["to"]
            if pair["to"] != word(0):
                account["storage"][slot] = pair["to"]
    return state


@pytest.mark.parametrize("fork", [f for f in LADDER if LADDER[f].clears_empty_accounts])
def test_changes_lead_from_each_transactions_state_to_the_next(fork: str) -> None:
    signs: set[str] = set()
    for seed in range(8):
        choose = random.Random(f"{fork} {seed}")
        chain = Chain(fork, random_accounts(choose, LADDER[fork]))
        for _ in range(6):
            before = snapshot(chain)
            nonce = chain.world.get_nonce(SENDER)
            try:
                chain.apply(random_transaction(choose, chain.fork, nonce))
            except InvalidTransaction:
                chain.executed.pop()
                continue
            after = snapshot(chain)
            stored = chain.stored(len(chain.executed) - 1)
            result = json.loads(DIFF.derive(stored, codes_of(chain)))
            changes = result["stateDiff"]
            assert moved(before, changes) == after
            for change in changes.values():
                signs |= set(change["balance"])
            # The result always contains sender and miner.
            assert {f"0x{SENDER.hex()}", f"0x{COINBASE.hex()}"} <= changes.keys()
            assert (result["trace"], result["vmTrace"]) == ([], None)
    assert signs >= {"*", "+", "="}
