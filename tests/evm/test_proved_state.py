"""Parts of states that are proved by nodes and codes of untrusted origin."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Mapping

import pytest
from eth_typing import Address, Hash32

from evm.changes import AccountValue, Changes
from evm.proof_nodes import NodeRows, ProofNodes
from evm.proved_state import (
    Keys,
    NotEnumerable,
    ProvedState,
    ProvedValues,
    UnknownValues,
)
from evm.signatures import keccak
from evm.state_trie import STATE_OWNER, StateTrie, address_key
from evm.trie import EMPTY_ROOT, NodeCache
from evm.world import EMPTY_CODE_HASH
from nodeapi.chain.memory_state import MemoryState
from tests.support.state_node import contract, make_state

STATE = make_state(accounts=60, slots=40)
ABSENT = Address(b"\x77" * 20)
SOME_SLOT = next(iter(STATE.slots[contract(0)]))


def root_of(state: MemoryState) -> Hash32:
    assert state.root is not None
    return state.root


ROOT = root_of(STATE)


def proof_nodes(state: MemoryState, keys: Keys) -> set[bytes]:
    """Return the nodes of the proofs of keys."""
    tries = state.open_trie()
    owners = {address for address, _ in keys.slots}
    proofs = tries.prove_accounts(sorted(keys.accounts | owners))
    for address in owners:
        slots = [slot for owner, slot in keys.slots if owner == address]
        proofs += tries.prove_slots(address, slots)
    return {node for proof in proofs for node in proof.nodes}


def all_keys() -> Keys:
    slots = {(address, slot) for address, of in STATE.slots.items() for slot in of}
    slots |= {(ABSENT, 1), (contract(0), 2**200), (contract(2), 9)}
    return Keys({*STATE.accounts, ABSENT}, slots)


def few_keys(chance: random.Random) -> Keys:
    slots = sorted(STATE.slots[contract(0)])
    return Keys(
        {*chance.sample(sorted(STATE.accounts), 3), contract(1), ABSENT},
        {(contract(0), chance.choice(slots)), (contract(0), 99), (contract(1), 5)},
    )


def check(values: ProvedValues) -> None:
    """Check that each value is that of the state."""
    for address, account in values.accounts.items():
        assert account == STATE.account(address)
        if account is not None and account.code_hash != EMPTY_CODE_HASH:
            assert values.codes[account.code_hash] == STATE.code(account.code_hash)
    for key, value in values.slots.items():
        assert value == STATE.storage(*key)


def prove(
    nodes: Iterable[bytes],
    keys: Keys,
    codes: Mapping[Hash32, bytes] = STATE.codes,
    root: Hash32 = ROOT,
) -> tuple[ProvedValues, Keys]:
    return ProvedState(root, ProofNodes(nodes), codes).values(keys)


def test_values_and_absences_are_proved() -> None:
    keys = all_keys()
    nodes = proof_nodes(STATE, keys)
    values, unknown = prove(nodes, keys)
    assert not unknown
    check(values)
    assert (values.accounts.keys(), values.slots.keys()) == (keys.accounts, keys.slots)
    assert values.accounts[ABSENT] is None
    assert values.codes == STATE.codes
    # The order of nodes, and other bytes beside them, do not matter.
    mixed = [b"", b"\xc0", b"\x80", *sorted(nodes), bytes(532)]
    assert prove(mixed, keys) == (values, unknown)


def test_an_account_without_storage_needs_no_proof_of_its_slots() -> None:
    nodes = proof_nodes(STATE, Keys({contract(2), ABSENT}))
    slots = {(contract(2), slot) for slot in (0, 5, 2**256 - 1)} | {(ABSENT, 3)}
    values, unknown = prove(nodes, Keys(set(), slots))
    assert not unknown
    assert values.slots == dict.fromkeys(slots, 0)


def test_an_empty_state_has_no_accounts() -> None:
    state = ProvedState(Hash32(EMPTY_ROOT), ProofNodes(), {})
    assert state.account(ABSENT) is None
    assert state.storage(ABSENT, 1) == 0


def test_what_is_not_proved_is_raised_and_never_zero() -> None:
    state = ProvedState(ROOT, ProofNodes(), {})
    reads: list[tuple[Callable[[], object], Keys]] = [
        (lambda: state.account(contract(0)), Keys({contract(0)})),
        (lambda: state.account(ABSENT), Keys({ABSENT})),
        (lambda: state.storage(contract(0), 1), Keys({contract(0)})),
    ]
    known = proof_nodes(STATE, Keys({contract(0)}))
    with_account = ProvedState(ROOT, ProofNodes(known), {})
    slot = (contract(0), 1)
    reads.append((lambda: with_account.storage(*slot), Keys(set(), {slot})))
    for read, keys in reads:
        with pytest.raises(UnknownValues) as caught:
            read()
        assert caught.value.keys == keys
    assert str(UnknownValues(all_keys())).startswith(f"{len(all_keys())} values")
    account = with_account.account(contract(0))
    assert account == STATE.account(contract(0))
    assert account is not None
    with pytest.raises(UnknownValues) as caught:
        with_account.code(account.code_hash)
    assert caught.value.keys == Keys({contract(0)})
    with pytest.raises(NotEnumerable):
        with_account.live_slots(contract(0))


def test_an_account_is_unknown_without_its_code() -> None:
    nodes = proof_nodes(STATE, all_keys())
    kept = {name: code for name, code in STATE.codes.items() if len(code) > 100}
    values, unknown = prove(nodes, Keys(set(STATE.accounts)), kept)
    assert unknown == Keys({contract(0)})
    assert contract(1) in values.accounts
    check(values)


def test_an_omitted_node_makes_unknown_what_it_proves() -> None:
    keys = all_keys()
    nodes = proof_nodes(STATE, keys)
    tries = STATE.open_trie()
    (top,) = {proof.nodes[0] for proof in tries.prove_accounts([ABSENT])}
    seen = Keys()
    for omitted in nodes:
        values, unknown = prove(nodes - {omitted}, keys)
        check(values)
        assert unknown
        assert len(values.accounts) + len(values.slots) + len(unknown) == len(keys)
        if omitted == top:
            assert unknown == keys
        else:
            seen.update(unknown)
    # Each account has a node of its own, and each slot of a large storage.
    assert seen.accounts >= STATE.accounts.keys()
    assert seen.slots >= {(contract(0), slot) for slot in STATE.slots[contract(0)]}


def corrupted(node: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(node))
    return node[:at] + bytes([node[at] ^ chance.randint(1, 255)]) + node[at + 1 :]


def truncated(node: bytes, chance: random.Random) -> bytes:
    return node[: chance.randrange(len(node))]


def nested(node: bytes, chance: random.Random) -> bytes:
    return b"\xf8\x20" + node


@pytest.mark.parametrize("change", [corrupted, truncated, nested])
def test_nothing_follows_from_a_false_node(
    change: Callable[[bytes, random.Random], bytes],
) -> None:
    chance = random.Random(3)
    for _ in range(10):
        keys = few_keys(chance)
        nodes = sorted(proof_nodes(STATE, keys))
        for place, node in enumerate(nodes):
            sent = [*nodes[:place], change(node, chance), *nodes[place + 1 :]]
            values, unknown = prove(sent, keys)
            check(values)
            assert unknown


def test_nodes_and_codes_of_another_state_prove_nothing() -> None:
    other = make_state(accounts=60, slots=40, seed=2)
    nodes = proof_nodes(other, all_keys())
    values, unknown = prove(nodes, all_keys(), other.codes)
    assert unknown == all_keys()
    assert values == ProvedValues()
    # Nor does a trie that is used in the place of another one.
    storage = STATE.accounts[contract(0)].storage_root
    assert storage is not None
    nodes = proof_nodes(STATE, all_keys())
    assert ProofNodes(nodes).prove(storage, address_key(contract(0))).value == b""


class Reader:
    """Rows as a `NodeReader`."""

    def __init__(self, rows: NodeRows) -> None:
        self._rows = rows

    def nodes(
        self, owner: bytes, paths: Collection[bytes], likely: Collection[bytes] = ()
    ) -> Mapping[bytes, bytes]:
        rows = self._rows.get(owner, {})
        return {path: rows[path] for path in {*paths, *likely} if path in rows}


def test_rows_are_the_nodes_by_their_paths() -> None:
    every = ProofNodes(proof_nodes(STATE, all_keys())).rows(ROOT)
    assert every.keys() == {STATE_OWNER, *(address_key(contract(n)) for n in (0, 1))}
    for owner, rows in every.items():
        paths = [path[:size] for path in rows for size in range(len(path) + 1)]
        assert STATE.nodes(owner, paths) == rows
    keys = few_keys(random.Random(5))
    nodes = proof_nodes(STATE, keys)
    some = ProofNodes({*nodes, b"\xc0"}).rows(ROOT)
    assert {node for rows in some.values() for node in rows.values()} == nodes
    assert all(rows.items() <= every[owner].items() for owner, rows in some.items())


def test_tries_are_updated_with_the_rows_of_proofs() -> None:
    chance = random.Random(7)
    for _ in range(5):
        keys = few_keys(chance)
        keys.accounts.add(contract(0))
        nodes = ProofNodes(proof_nodes(STATE, keys))
        state = ProvedState(ROOT, nodes, STATE.codes)
        changes = Changes()
        for address in keys.accounts:
            changes.accounts[address] = AccountValue(
                9,
                9,
                EMPTY_CODE_HASH,
                getattr(STATE.account(address), "storage_root", None),
            )
        changes.storage[contract(0)] = {
            slot: chance.getrandbits(256)
            for owner, slot in keys.slots
            if owner == contract(0)
        }
        expected = STATE.copy().apply(changes)
        trie = StateTrie(Reader(nodes.rows(ROOT)), NodeCache(0), ROOT, state)
        assert trie.apply(changes) == expected != ROOT


def test_nodes_of_several_senders_are_added() -> None:
    keys = all_keys()
    nodes = sorted(proof_nodes(STATE, keys), key=keccak)
    half = len(nodes) // 2
    found = ProofNodes(nodes[:half])
    assert ProvedState(ROOT, found, STATE.codes).values(keys)[1]
    found.add(nodes[half:])
    assert len(found) == len(nodes)
    assert not ProvedState(ROOT, found, STATE.codes).values(keys)[1]
