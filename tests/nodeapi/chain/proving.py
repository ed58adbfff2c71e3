"""Checks of proofs by the reference library."""

from __future__ import annotations

import rlp
from eth_typing import Address
from trie import HexaryTrie

from evm.state_trie import (
    StateTrie,
    account_leaf,
    address_key,
    slot_key,
    slot_leaf,
)
from evm.trie_proofs import KeyProof
from nodeapi.chain.memory_state import MemoryState
from tests.nodeapi.chain.trees import tree

ADDRESSES = sorted({a for node in tree().values() for a in node.state.accounts})
"""All accounts of the tree of blocks."""
ABSENT = Address(b"\x77" * 20)


def accepted_value(root: bytes, proof: KeyProof, key: bytes) -> bytes:
    """Return the value that the reference library finds in a proof."""
    nodes = [rlp.decode(node) for node in proof.nodes]
    found: bytes = HexaryTrie.get_from_proof(root, key, nodes)
    return found


def check_proofs(tries: StateTrie, state: MemoryState) -> None:
    """Check the proofs of all accounts and of the slots that the tree's blocks write."""
    root = state.root
    assert root is not None
    addresses = [*ADDRESSES, ABSENT]
    proofs = tries.prove_accounts(addresses)
    for address, proof in zip(addresses, proofs, strict=True):
        account = state.account(address)
        found = accepted_value(root, proof, address_key(address))
        assert found == (account_leaf(account) if account else b"")
        if account is None or account.storage_root is None:
            assert tries.prove_slots(address, [0])[0].nodes == []
            continue
        slots = list(range(8))
        for slot, slot_proof in zip(
            slots, tries.prove_slots(address, slots), strict=True
        ):
            value = accepted_value(account.storage_root, slot_proof, slot_key(slot))
            assert value == slot_leaf(state.storage(address, slot))
