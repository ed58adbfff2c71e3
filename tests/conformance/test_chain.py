"""Requests for each block, transaction and slot of the recorded chain."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import pytest

from evm import rlp
from evm.blocks import Block
from evm.changes import AccountValue
from evm.signatures import keccak
from evm.trie_roots import build_root
from evm.world import EMPTY_CODE_HASH
from networks.models import Network
from networks.services import configure_network
from tests.nodeapi.chain.verifying import verify_chain
from tests.support import chains, execution_apis
from tests.support.live import Api, Live, live_service

Slots = dict[tuple[str, int], int]

_TWIN_BLOCKS = 40


class Answers(NamedTuple):
    """The network under test, a client, and the network's blocks."""

    live: Live
    api: Api
    blocks: list[Block]


@pytest.fixture(scope="module")
def answers(module_db: None) -> Iterator[Answers]:
    start, raw = execution_apis.genesis(), execution_apis.raw_blocks()
    chains.import_blocks("hive", start, raw)
    chains.import_blocks("twin", start, raw[:_TWIN_BLOCKS])
    configure_network(
        network=Network.objects.get(slug="hive"), emit_total_difficulty=False
    )
    configure_network(
        network=Network.objects.get(slug="twin"), host_names=["twin.test"]
    )
    with live_service() as live, live.api("hive") as api:
        yield Answers(live, api, execution_apis.blocks())


@pytest.fixture(scope="module")
def history() -> list[Slots]:
    """Return the value of every written slot after each block.

    The values come from the alloc and the blocks' executions, not from the database.
    """
    start = execution_apis.genesis()
    raw = b"".join(execution_apis.raw_blocks())
    verified, _ = verify_chain(start, raw)
    slots: Slots = {
        (address_text(account), int(slot, 16)): int(value, 16)
        for account, fields in start["alloc"].items()
        for slot, value in fields.get("storage", {}).items()
    }
    states = [dict(slots)]
    for block in verified:
        for address, values in block.changes.storage.items():
            slots |= {
                (address_text(address.hex()), slot): v for slot, v in values.items()
            }
        states.append(dict(slots))
    names = set(states[-1])
    return [{name: state.get(name, 0) for name in names} for state in states]


class Accounts(NamedTuple):
    """Every account after each block, and all code."""

    states: list[dict[str, AccountValue | None]]
    codes: dict[bytes, bytes]


@pytest.fixture(scope="module")
def accounts() -> Accounts:
    """Return the accounts, computed from the alloc and each block's changes."""
    start = execution_apis.genesis()
    raw = b"".join(execution_apis.raw_blocks())
    verified, _ = verify_chain(start, raw)
    codes = {EMPTY_CODE_HASH: b""}
    state: dict[str, AccountValue | None] = {}
    for account, fields in start["alloc"].items():
        code = bytes.fromhex(fields.get("code", "0x")[2:])
        codes[keccak(code)] = code
        state[address_text(account)] = AccountValue(
            number_in(fields.get("nonce", "0x0")),
            number_in(fields["balance"]),
            keccak(code),
            None,
        )
    states = [dict(state)]
    for block in verified:
        codes |= block.changes.codes
        for address, value in block.changes.accounts.items():
            state[address_text(address.hex())] = value
        states.append(dict(state))
    names = set(states[-1])
    return Accounts(
        [{name: each.get(name) for name in names} for each in states], codes
    )


def number_in(text: str | int) -> int:
    return int(text, 0) if isinstance(text, str) else text


def address_text(hexadecimal: str) -> str:
    return "0x" + hexadecimal.removeprefix("0x").lower().rjust(40, "0")


def hash_text(block: Block) -> str:
    return "0x" + block.header.hash.hex()


def word(value: int) -> str:
    return f"0x{value:064x}"


def test_full_block_holds_what_its_transactions_are_alone(answers: Answers) -> None:
    hashes = [hash_text(block) for block in answers.blocks]
    full = answers.api.results(("eth_getBlockByHash", h, True) for h in hashes)
    short = answers.api.results(("eth_getBlockByHash", h, False) for h in hashes)
    for block, with_objects, with_hashes in zip(
        answers.blocks, full, short, strict=True
    ):
        count = len(block.transactions)
        alone = answers.api.results(
            ("eth_getTransactionByBlockHashAndIndex", hash_text(block), hex(index))
            for index in range(count + 1)
        )
        assert alone.pop() is None
        assert with_objects["transactions"] == alone
        assert with_hashes["transactions"] == [found["hash"] for found in alone]
        own = [transaction.hash for transaction in block.transactions]
        assert with_hashes["transactions"] == ["0x" + h.hex() for h in own]
        for index, found in enumerate(alone):
            assert found["blockHash"] == with_objects["hash"] == hash_text(block)
            assert found["blockNumber"] == with_objects["number"]
            assert found["blockTimestamp"] == with_objects["timestamp"]
            assert found["transactionIndex"] == hex(index)
        assert {**with_objects, "transactions": 0} == {**with_hashes, "transactions": 0}


def test_block_by_number_is_the_block_by_hash(answers: Answers) -> None:
    api = answers.api
    numbers = range(len(answers.blocks) + 1)
    by_number = {
        full: api.results(("eth_getBlockByNumber", hex(n), full) for n in numbers)
        for full in (False, True)
    }
    hashes = [block["hash"] for block in by_number[False]]
    assert hashes[1:] == [hash_text(block) for block in answers.blocks]
    assert [int(block["number"], 16) for block in by_number[False]] == list(numbers)
    for full, found in by_number.items():
        by_hash = api.results(("eth_getBlockByHash", h, full) for h in hashes)
        assert found == by_hash
    for parent, child in zip(hashes, by_number[True][1:], strict=False):
        assert child["parentHash"] == parent
    tagged = [
        api.result("eth_getBlockByNumber", tag, True)
        for tag in ("latest", "safe", "finalized", "pending", "earliest")
    ]
    assert tagged == [by_number[True][-1]] * 4 + [by_number[True][0]]
    assert (
        api.result("eth_getBlockByNumber", hex(len(answers.blocks) + 1), True) is None
    )


def test_every_slot_is_right_after_every_block(
    answers: Answers, history: list[Slots]
) -> None:
    numbers = [hex(number) for number in range(len(history))]
    blocks = answers.api.results(("eth_getBlockByNumber", n, False) for n in numbers)
    positions: dict[str, list[str]] = defaultdict(list)
    for address, slot in sorted(history[-1]):
        positions[address].append(word(slot))
    assert sum(map(len, positions.values())) > 100
    for state, block in zip(history, blocks, strict=True):
        expected = {
            address: [word(state[address, int(slot, 16)]) for slot in slots]
            for address, slots in positions.items()
        }
        # One of the two responses, by number and by hash, comes from the cache.
        names: list[Any] = [block["number"], {"blockHash": block["hash"]}]
        for name in names if int(block["number"], 16) % 2 else reversed(names):
            found = answers.api.result("eth_getStorageValues", positions, name)
            assert found == expected


def test_slots_that_change_are_right_one_by_one(
    answers: Answers, history: list[Slots]
) -> None:
    calls, expected = [], []
    for number, (before, after) in enumerate(pairwise(history), start=1):
        for (address, slot), value in after.items():
            if value == before[address, slot]:
                continue
            block = hash_text(answers.blocks[number - 1])
            for name, right in (
                (hex(number - 1), before[address, slot]),
                (hex(number), value),
                (block, value),
                ({"blockHash": block, "requireCanonical": True}, value),
            ):
                calls.append(("eth_getStorageAt", address, hex(slot), name))
                expected.append(word(right))
    assert len(calls) > 400
    assert answers.api.results(calls) == expected
    assert answers.api.results(reversed(calls)) == expected[::-1]


def test_every_account_is_right_after_every_block(
    answers: Answers, accounts: Accounts
) -> None:
    numbers = range(len(accounts.states))
    blocks = answers.api.results(
        ("eth_getBlockByNumber", hex(number), False) for number in numbers
    )
    names = sorted(accounts.states[-1])
    assert len(names) > 30
    for state, block in zip(accounts.states, blocks, strict=True):
        values = [state[name] for name in names]
        expected = {
            "eth_getBalance": [
                hex(value.balance) if value else "0x0" for value in values
            ],
            "eth_getTransactionCount": [
                hex(value.nonce) if value else "0x0" for value in values
            ],
            "eth_getCode": [
                "0x" + accounts.codes[value.code_hash].hex() if value else "0x"
                for value in values
            ],
        }
        ways: list[Any] = [block["number"], {"blockHash": block["hash"]}]
        for way in ways if int(block["number"], 16) % 2 else reversed(ways):
            for method, results in expected.items():
                calls = [(method, name, way) for name in names]
                assert answers.api.results(calls) == results


def test_accounts_are_the_leaves_of_the_state_trie(
    answers: Answers, accounts: Accounts
) -> None:
    for number in (0, 20, len(accounts.states) - 1):
        block = answers.api.result("eth_getBlockByNumber", hex(number), False)
        state = accounts.states[number]
        leaves = {}
        for name, value in state.items():
            found = answers.api.result("eth_getAccount", name, hex(number))
            assert (found is None) == (value is None)
            if value is None:
                continue
            info = answers.api.result("eth_getAccountInfo", name, hex(number))
            code = accounts.codes[value.code_hash]
            assert info == {
                **{member: found[member] for member in ("balance", "nonce")},
                "code": "0x" + code.hex(),
            }
            assert found["codeHash"] == "0x" + keccak(code).hex()
            leaf = [
                rlp.encode_int(int(found["nonce"], 16)),
                rlp.encode_int(int(found["balance"], 16)),
                bytes.fromhex(found["storageRoot"][2:]),
                bytes.fromhex(found["codeHash"][2:]),
            ]
            leaves[keccak(bytes.fromhex(name[2:]))] = rlp.encode(leaf)
        assert "0x" + build_root(sorted(leaves.items())).hex() == block["stateRoot"]


@pytest.mark.parametrize(
    "way", [{"network": "twin"}, {"host": "twin.test"}, {"host": "TWIN.test:8000"}]
)
def test_networks_with_the_same_blocks_do_not_mix(
    answers: Answers, history: list[Slots], way: dict[str, str]
) -> None:
    late = answers.blocks[_TWIN_BLOCKS:]
    early = answers.blocks[:_TWIN_BLOCKS]
    changed = [
        name for name, value in history[-1].items() if value != history[40][name]
    ]
    assert changed
    with answers.live.api(**way) as twin:
        for _ in range(2):  # the second response comes from the cache
            assert twin.result("eth_blockNumber") == hex(_TWIN_BLOCKS)
            assert answers.api.result("eth_blockNumber") == hex(len(answers.blocks))
            for api, seen in ((answers.api, True), (twin, False)):
                found = api.results(
                    ("eth_getBlockByHash", hash_text(block), full)
                    for block in late
                    for full in (False, True)
                )
                assert [block is not None for block in found] == [seen] * len(found)
                first = api.results(
                    (
                        "eth_getTransactionByBlockHashAndIndex",
                        hash_text(block),
                        "0x0",
                    )
                    for block in late
                    if block.transactions
                )
                assert [found is not None for found in first] == [seen] * len(first)
            for block in early[::10]:
                mine, other = (
                    api.result("eth_getBlockByHash", hash_text(block), False)
                    for api in (answers.api, twin)
                )
                assert "totalDifficulty" not in mine
                assert other.pop("totalDifficulty").startswith("0x")
                assert mine == other
            for address, slot in changed:
                for api, state in ((answers.api, history[-1]), (twin, history[40])):
                    value = api.result("eth_getStorageAt", address, hex(slot), "latest")
                    assert value == word(state[address, slot])
            where = {"blockHash": hash_text(late[0])}
            with pytest.raises(AssertionError, match="header for hash not found"):
                twin.result("eth_getStorageAt", *changed[0][:1], "0x0", where)


def test_the_oldest_network_is_the_default_one(answers: Answers) -> None:
    with answers.live.api() as api:
        assert api.result("eth_blockNumber") == hex(len(answers.blocks))


def test_key_of_one_network_opens_no_other(answers: Answers) -> None:
    key = answers.live.new_key(networks=[Network.objects.get(slug="twin")])
    with answers.live.api("twin", key) as api:
        assert api.result("eth_blockNumber") == hex(_TWIN_BLOCKS)
    for way in ({"network": "hive"}, {"host": "elsewhere.test"}):
        with answers.live.api(key=key, **way) as api:
            response = api.send({"jsonrpc": "2.0", "id": 7, "method": "eth_chainId"})
            assert response.status_code == 403
            assert response.json()["error"]["data"]["reason"] == "network_not_enabled"
