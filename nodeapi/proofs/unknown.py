"""What a task has not known in a worker process, or a read in the store."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from evm.proved_state import Keys, ProvedValues, UnknownValues

PastStates = dict[bytes, ProvedValues]
"""Values of states below a checkpoint, by the hashes of the blocks after which they are."""


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


class UnknownAfter(UnknownValues):
    """Raised in the store for values after a block at or above the checkpoint."""

    def __init__(self, keys: Keys, block_hash: bytes) -> None:
        super().__init__(keys)
        self.block_hash = block_hash


class UnknownPast(UnknownValues):
    """Raised for values of a state below the checkpoint, which are never stored.

    block_hash: of the block after which they are read.
    job: names the execution that has read them, whose next attempt gets the values; None
        for a read in the store, which finds them in its cache.
    call: the call whose execution has read them, None for a block or a plain read.
    executed: hash of the block whose execution has read them, if it is one.
    """

    def __init__(
        self,
        keys: Keys,
        block_hash: bytes,
        *,
        job: Hashable = None,
        call: UnknownInCall | None = None,
        executed: bytes | None = None,
    ) -> None:
        super().__init__(keys)
        self.block_hash = block_hash
        self.job = job
        self.call = call
        self.executed = executed


class UnknownNodes(Exception):
    """Raised for trie nodes that are needed to change accounts and slots.

    keys: the accounts and slots, whose proofs have most of the nodes.
    """

    def __init__(self, keys: Keys) -> None:
        super().__init__(keys)
        self.keys = keys
