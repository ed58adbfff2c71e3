"""Checks of submitted transactions under the rules of a network's head."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import orjson

from evm.rules.fork import Fork
from networks.directory import NetworkView
from nodeapi.errors.execution import ExecutionFailed
from nodeapi.errors.relay import TransactionRejected
from nodeapi.relay.bounds import SharedReads
from nodeapi.sending.decoding import Submission, decode_submission
from nodeapi.sending.rules import HeadRules, check, check_size
from nodeapi.store import Store
from nodeapi.tracing.jobs import TaskJob
from nodeapi.tracing.pool import TracePool
from postgres.errors import Unavailable

LONG_BYTES = 2**14
"""Longer transactions are checked in a thread, because that may take milliseconds."""
PROOF_SECONDS = 60.0
"""Time limit for verifying the proofs of a transaction's blobs, in a worker process. They
take 0.1 s, but a worker that is stopped while it loads the library's setup has to load it
again for the next transaction, and on a busy machine that takes many seconds."""
_PROOFS = "proofs of blobs"
"""Key of these tasks in the queue of the worker processes."""


class Checker:
    """Decodes and checks transactions. The rules of each network's head are cached."""

    def __init__(self, store: Store, tracing: TracePool) -> None:
        self._store = store
        self._tracing = tracing
        self._rules: dict[int, tuple[bytes, HeadRules]] = {}
        """Network id → hash of a head, and the rules that it determines."""
        self._reads = SharedReads()
        self._verifying = asyncio.Lock()
        """Held while proofs are verified, so that they take one worker at a time."""

    async def close(self) -> None:
        """Cancel all reads."""
        await self._reads.close()

    async def check(self, network: NetworkView, raw: bytes) -> Submission:
        """Return a decoded transaction that follows the rules.

        On a network without upstreams, it also follows those of geth's own pool, and the
        proofs of its blobs are valid.

        Raises: TransactionRejected; Unavailable; RpcError if the proofs could not be
            verified, see `nodeapi.errors.execution`.
        """
        rules = await self._head_rules(network)
        if not network.upstreams:
            rules = replace(rules, is_local=True)
        try:
            check_size(raw)
            if len(raw) > LONG_BYTES:
                submission = await asyncio.to_thread(_decode, raw, rules)
            else:
                submission = _decode(raw, rules)
        except ValueError as error:
            raise TransactionRejected(str(error)) from None
        if rules.is_local and submission.sidecar is not None:
            await self._verify_proofs(network, raw, rules.fork)
        return submission

    async def _verify_proofs(
        self, network: NetworkView, raw: bytes, fork: Fork
    ) -> None:
        """Verify the proofs of a transaction's blobs in a worker process.

        The library would stop all threads of this process for a tenth of a second.
        """
        arguments = {"raw": "0x" + raw.hex(), "has_cell_proofs": fork.has_cell_proofs}
        job = TaskJob(
            network_id=network.id,
            task="verify_sidecar",
            block_hash=b"",
            arguments=arguments,
            timeout=PROOF_SECONDS,
        )
        try:
            async with self._verifying:
                await self._tracing.run(job, _PROOFS)
        except ExecutionFailed as error:
            raise TransactionRejected(error.message) from None

    async def _head_rules(self, network: NetworkView) -> HeadRules:
        """Return the rules for transactions under a network's head.

        Raises: Unavailable.
        """
        head_hash = network.head_hash
        if head_hash is None:
            raise Unavailable("the network has no blocks yet")
        known = self._rules.get(network.id)
        if known is not None and known[0] == head_hash:
            return known[1]
        return await self._reads.get(
            (network.id, head_hash), lambda: self._read_rules(network, head_hash)
        )

    async def _read_rules(self, network: NetworkView, head_hash: bytes) -> HeadRules:
        document = await self._store.block_by_hash(network.id, head_hash, False, False)
        if document is None:
            raise Unavailable("the head was removed")
        config = await self._store.genesis_config(network.id)
        head = orjson.loads(document)
        rules = HeadRules(
            network.chain_id,
            await asyncio.to_thread(_fork, config, head),
            int(head["gasLimit"], 16),
        )
        self._rules[network.id] = head_hash, rules
        return rules


def _decode(raw: bytes, rules: HeadRules) -> Submission:
    submission = decode_submission(raw)
    check(submission, rules)
    return submission


def _fork(config: Any, head: dict[str, Any]) -> Fork:
    """Return the head's fork. geth's transaction pool applies its rules."""
    # Importing it loads the libraries of the precompiled contracts, once.
    from evm.chain_config import ChainConfig

    return ChainConfig.from_genesis({"config": config}).fork_at(
        int(head["number"], 16),
        int(head["timestamp"], 16),
        is_merged=int(head["difficulty"], 16) == 0,
    )
