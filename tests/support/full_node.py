"""The state methods of a simulated upstream whose chain is a network of the test database."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import psycopg
from eth_typing import Address

from evm.block_access_list import decode_access_list
from evm.tracers.record import unpack
from evm.world import EMPTY_CODE_HASH
from networks.models import Network
from nodeapi.chain.networks import stored_config
from nodeapi.chain.replay import find_origin
from nodeapi.chain.state_reader import StoredState
from nodeapi.chain.trie_at import TriesAt, rewind, trie_at
from nodeapi.chain.witness import build_witness
from nodeapi.results.proofs import proof_document
from nodeapi.tracing.tasks.proofs import witness_document
from samples.node import Refused


class FullNode:
    """The state methods of a node that has a network's blocks.

    methods: by name. Delete one, and the node does not offer it.
    """

    def __init__(self, connection: psycopg.Connection[Any], slug: str) -> None:
        """Read the network through a connection, which must be open all the time."""
        network = Network.objects.get(slug=slug)
        self._connection = connection
        self._network_id = network.pk
        self._config = stored_config(network.pk)
        self._tries: dict[bytes, TriesAt] = {}
        """The tries after the block that was asked last."""
        self.methods: dict[str, Callable[..., Any]] = {
            "eth_getProof": self._proof,
            "eth_getCode": self._code,
            "debug_executionWitness": self._witness,
            "debug_traceBlockByHash": self._prestates,
        }

    def _block(self, name: Any) -> tuple[int, bytes]:
        """Return number and hash of a block by its name in a call."""
        text = name["blockHash"] if isinstance(name, dict) else name
        column, value = (
            ("hash", bytes.fromhex(text[2:]))
            if len(text) == 66
            else ("number", int(text, 16))
        )
        row = self._connection.execute(
            f"SELECT number, hash FROM nodeapi_block WHERE network_id = %s"
            f" AND {column} = %s AND is_canonical",
            (self._network_id, value),
        ).fetchone()
        if row is None:
            raise Refused(-32000, "header not found")
        return row[0], bytes(row[1])

    def _proof(self, name: str, keys: list[str], block: Any) -> Any:
        address = Address(bytes.fromhex(name[2:]))
        _, block_hash = self._block(block)
        if block_hash not in self._tries:
            self._tries = {
                block_hash: trie_at(self._connection, self._network_id, block_hash)
            }
        tries = self._tries[block_hash]
        (account,) = tries.prove_accounts([address])
        slots = tries.prove_slots(address, [int(key, 16) for key in keys])
        return json.loads(proof_document(address, account, keys, slots))

    def _code(self, name: str, block: Any) -> str:
        number, _ = self._block(block)
        state = StoredState(self._connection, self._network_id, number)
        account = state.account(Address(bytes.fromhex(name[2:])))
        if account is None or account.code_hash == EMPTY_CODE_HASH:
            return "0x"
        return f"0x{state.code(account.code_hash).hex()}"

    def _witness(self, block: str) -> Any:
        _, block_hash = self._block(block)
        origin = find_origin(
            self._connection, self._network_id, self._config, block_hash
        )
        parent = rewind(
            self._connection, self._network_id, origin.block.header.parent_hash
        )
        found = build_witness(self._connection, self._network_id, origin, parent)
        return json.loads(witness_document(found))

    def _prestates(self, block: str, _options: Any) -> Any:
        """Return a trace with the keys of the block's access list, but without values."""
        _, block_hash = self._block(block)
        (row,) = self._connection.execute(
            "SELECT list FROM nodeapi_blockaccesslist JOIN nodeapi_block AS block"
            " ON block.id = block_id WHERE network_id = %s AND hash = %s",
            (self._network_id, block_hash),
        )
        accounts = {
            f"0x{each.address.hex()}": {
                "storage": {
                    f"0x{slot:064x}": f"0x{0:064x}"
                    for slot in (*each.storage, *each.reads)
                }
            }
            for each in decode_access_list(unpack(bytes(row[0])))
        }
        return [{"txHash": f"0x{0:064x}", "result": accounts}]
