"""The cache of values that were proved, and are not stored or only later.

Reads find them under the keys that the values of other blocks have there.
"""

from __future__ import annotations

from evm.proved_state import Keys, ProvedValues
from evm.trie_nodes import EMPTY_ROOT
from nodeapi.store.accounts import packed_value, unpacked_value
from nodeapi.store.base import Reads


class PastValues(Reads):
    """Values of states below a checkpoint, and just proved ones of later states."""

    def keep_values(
        self, network_id: int, block_hash: bytes, values: ProvedValues
    ) -> None:
        """Cache values that were proved against the state root of a block."""
        for address, account in values.accounts.items():
            key = ("account", network_id, block_hash, address)
            self._cache.put(key, packed_value(account))
        for (address, slot), value in values.slots.items():
            self._cache.put(
                ("storage", network_id, block_hash, address, slot), value.to_bytes(32)
            )
        for code_hash, code in values.codes.items():
            self._cache.put(("code", code_hash), code)

    def kept_values(
        self, network_id: int, block_hash: bytes, keys: Keys
    ) -> ProvedValues:
        """Return the cached ones of the accounts and slots after a block."""
        found = ProvedValues()
        for address in keys.accounts:
            packed = self._cache.get(("account", network_id, block_hash, address))
            if packed is not None:
                account = unpacked_value(packed)
                if account is not None and account.storage_root == EMPTY_ROOT:
                    account = account._replace(storage_root=None)
                found.accounts[address] = account
        for address, slot in keys.slots:
            word = self._cache.get(("storage", network_id, block_hash, address, slot))
            if word is not None:
                found.slots[address, slot] = int.from_bytes(word)
        return found
