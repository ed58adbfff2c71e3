"""Proofs of an account and its slots as JSON, and their limit.

Source: EIP-1186; go-ethereum internal/ethapi/api.go, GetProof
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from evm.headers import ZERO_HASH
from evm.state_trie import decode_account_leaf, decode_slot_leaf
from evm.trie import EMPTY_ROOT
from nodeapi.encoding import data, quantity

if TYPE_CHECKING:
    from evm.trie_proofs import KeyProof


MAX_CHANGES = 50_000
"""Most account versions since a block for which its tries are computed. They take some
3 seconds and 100 MB."""


def storage_root(account: KeyProof) -> bytes:
    """Return the root of a proven account's storage trie."""
    if not account.value:
        return EMPTY_ROOT
    return decode_account_leaf(account.value).storage_root or EMPTY_ROOT


def proof_document(
    address: bytes, account: KeyProof, names: Sequence[str], slots: Sequence[KeyProof]
) -> bytes:
    """Return the result of eth_getProof.

    names: of the slots' keys, see `key_names`. slots: a proof for each of them.

    Like geth, an account that does not exist has hashes of zeros.
    """
    nonce, balance = 0, 0
    code_hash: bytes = ZERO_HASH
    root: bytes = ZERO_HASH
    if account.value:
        found = decode_account_leaf(account.value)
        nonce, balance, code_hash = found.nonce, found.balance, found.code_hash
        root = found.storage_root or EMPTY_ROOT
    members = [
        b'{"key":"%b","value":%b,"proof":%b}'
        % (name.encode(), quantity(decode_slot_leaf(slot.value)), _nodes(slot.nodes))
        for name, slot in zip(names, slots, strict=True)
    ]
    return (
        b'{"address":%b,"accountProof":%b,"balance":%b,"codeHash":%b,"nonce":%b,'
        b'"storageHash":%b,"storageProof":[%b]}'
        % (
            data(address),
            _nodes(account.nodes),
            quantity(balance),
            data(code_hash),
            quantity(nonce),
            data(root),
            b",".join(members),
        )
    )


def _nodes(nodes: Iterable[bytes]) -> bytes:
    return b"[" + b",".join(map(data, nodes)) + b"]"
