"""The state methods of a simulated upstream whose chain is a network of the test database."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from functools import partial
from threading import Lock
from typing import Any

import psycopg
from eth_typing import Address

from evm.state_trie import decode_account_leaf
from evm.tracers.native import PRESTATE, NativeTracer
from networks.models import Network
from nodeapi.chain.networks import stored_config
from nodeapi.chain.replay import find_origin
from nodeapi.chain.trie_at import TriesAt, rewind, trie_at
from nodeapi.chain.witness import build_witness
from nodeapi.results.proofs import proof_document
from nodeapi.tracing.derivation import derive
from nodeapi.tracing.jobs import TraceJob
from nodeapi.tracing.tasks.proofs import witness_document
from samples.node import Refused


class FullNode:
    """The state methods of a node that has a network's blocks.

    methods: by name. Delete one, and the node does not offer it. change: of each result.
    calls: how often each of them was called.
    oldest: number of the oldest block whose state is kept. has_side_blocks: whether those
    of side blocks are.
    """

    def __init__(self, connection: psycopg.Connection[Any], slug: str) -> None:
        """Read the network through a connection, which must be open all the time."""
        network = Network.objects.get(slug=slug)
        self._connection = connection
        self._network_id = network.pk
        self._config = stored_config(network.pk)
        self._lock = Lock()
        self._tries: dict[bytes, TriesAt] = {}
        """The tries after the block that was asked last."""
        self.oldest = 0
        self.calls: Counter[str] = Counter()
        self.has_side_blocks = True
        self.change: Callable[[str, Any], Any] = lambda _method, result: result
        self.methods: dict[str, Callable[..., Any]] = {
            name: partial(self._answer, name, method)
            for name, method in {
                "eth_getProof": self._proof,
                "eth_getCode": self._code,
                "debug_executionWitness": self._witness,
                "debug_traceBlockByHash": self._prestates,
            }.items()
        }

    def _answer(self, name: str, method: Callable[..., Any], *params: Any) -> Any:
        with self._lock:
            self.calls[name] += 1
            return self.change(name, method(*params))

    def _hash(self, name: Any) -> bytes:
        """Return the hash of a block by its name in a call."""
        text = name["blockHash"] if isinstance(name, dict) else name
        column, value = (
            ("hash", bytes.fromhex(text[2:]))
            if len(text) == 66
            else ("number", int(text, 16))
        )
        row = self._connection.execute(
            f"SELECT hash, number FROM nodeapi_block WHERE network_id = %s"
            f" AND {column} = %s AND (is_canonical OR %s) ORDER BY is_canonical DESC",
            (self._network_id, value, self.has_side_blocks),
        ).fetchone()
        if row is None:
            raise Refused(-32000, "header not found")
        if row[1] < self.oldest:
            raise Refused(-32000, "missing trie node")
        return bytes(row[0])

    def _tries_at(self, name: Any) -> TriesAt:
        block_hash = self._hash(name)
        if block_hash not in self._tries:
            self._tries = {
                block_hash: trie_at(self._connection, self._network_id, block_hash)
            }
        return self._tries[block_hash]

    def _proof(self, name: str, keys: list[str], block: Any) -> Any:
        address = Address(bytes.fromhex(name[2:]))
        tries = self._tries_at(block)
        (account,) = tries.prove_accounts([address])
        slots = tries.prove_slots(address, [int(key, 16) for key in keys])
        return json.loads(proof_document(address, account, keys, slots))

    def _code(self, name: str, block: Any) -> str:
        tries = self._tries_at(block)
        (account,) = tries.prove_accounts([Address(bytes.fromhex(name[2:]))])
        if not account.value:
            return "0x"
        row = self._connection.execute(
            "SELECT code FROM nodeapi_code WHERE hash = %s",
            (decode_account_leaf(account.value).code_hash,),
        ).fetchone()
        return f"0x{bytes(row[0]).hex()}" if row else "0x"

    def _witness(self, block: str) -> Any:
        block_hash = self._hash(block)
        origin = find_origin(
            self._connection, self._network_id, self._config, block_hash
        )
        parent = rewind(
            self._connection, self._network_id, origin.block.header.parent_hash
        )
        found = build_witness(self._connection, self._network_id, origin, parent)
        return json.loads(witness_document(found))

    def _prestates(self, block: str, options: Any) -> Any:
        flags = frozenset(name for name, on in options["tracerConfig"].items() if on)
        tracer = NativeTracer(PRESTATE, flags)
        job = TraceJob(
            network_id=self._network_id,
            block_hash=self._hash(block),
            tracer=tracer,
            timeout=60,
        )
        pieces: list[bytes] = []
        with self._connection.transaction():
            derive(self._connection, job, tracer, pieces.append, lambda: None)
        return json.loads(b"".join(pieces))
