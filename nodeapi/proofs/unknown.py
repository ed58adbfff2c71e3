"""What a task has not known in a worker process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evm.proved_state import Keys, UnknownValues


class UnknownInCall(UnknownValues):
    """Raised for the unknown values of a call, of which an upstream may name more.

    call: with JSON values, as in eth_call. block_hash: after which it is executed.
    overrides: of the state, as JSON values, or None.
    """

    def __init__(
        self,
        keys: Keys,
        call: Mapping[str, Any],
        block_hash: bytes,
        overrides: Any = None,
    ) -> None:
        super().__init__(keys)
        self.call = call
        self.overrides = overrides
        self.block_hash = block_hash


class UnknownNodes(Exception):
    """Raised for trie nodes that are needed to change accounts and slots.

    keys: the accounts and slots, whose proofs have most of the nodes.
    """

    def __init__(self, keys: Keys) -> None:
        super().__init__(keys)
        self.keys = keys
