"""The state after a block: accounts, slots, code and proofs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from evm.changes import AccountValue
from jsonrpc.later import Later
from nodeapi.encoding import BlockReference

MAX_SLOTS = 1024
"""Maximum number of slots of `storage_values`: geth's limit for eth_getStorageValues."""


class States(Protocol):
    """Reads accounts, slots and code after a block, and proves them."""

    def state_hash(self, network_id: int, block: BlockReference) -> Later[bytes]:
        """Return the hash of the stored block that a block parameter names.

        Fails with HeaderNotFound, HeaderForHashNotFound, NotCanonical or
        TaggedBlockNotFound.
        """

    def account(
        self, network_id: int, address: bytes, block: BlockReference
    ) -> Later[AccountValue | None]:
        """Return an account after a block, or None if it does not exist.

        Without storage, the storage root is the root of the empty trie.
        """

    def code(
        self, network_id: int, address: bytes, block: BlockReference
    ) -> Later[bytes]:
        """Return the code of an account after a block, empty if it has none."""

    def storage_at(
        self, network_id: int, address: bytes, slot: int, block: BlockReference
    ) -> Later[bytes]:
        """Return the 32 bytes of a slot after a block."""

    def storage_values(
        self,
        network_id: int,
        slots: Sequence[tuple[bytes, int]],
        block: BlockReference,
    ) -> Later[list[bytes]]:
        """Return the values of many slots after the same block."""

    def proof(
        self,
        network_id: int,
        block_hash: bytes,
        address: bytes,
        names: Sequence[str],
    ) -> Later[bytes | None]:
        """Return the result of eth_getProof, None if it takes long to compute.

        names: the slots' keys, as `nodeapi.proofs.requests.key_names` returns them.
        """
