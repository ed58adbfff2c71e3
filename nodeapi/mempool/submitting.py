"""Access to a local pool from a thread, with a database connection of its own."""

from __future__ import annotations

from typing import Any

import psycopg

from evm.headers import decode_header
from nodeapi.mempool.adding import add_transaction
from nodeapi.mempool.alive import next_nonce_query
from nodeapi.sending.decoding import decode_submission
from nodeapi.sending.rules import HeadRules, check, check_size

_HEAD = """
    SELECT n.chain_id, n.genesis, b.header FROM networks_network n
    JOIN nodeapi_block b ON b.network_id = n.id AND b.hash = n.head_hash
    WHERE n.id = %s
"""
_NEXT_NONCE = next_nonce_query("%(network)s", "%(address)s")


def submit_transaction(
    connection: psycopg.Connection[Any], network_id: int, raw: bytes
) -> None:
    """Check a signed transaction under the head's rules, and add it to the local pool.

    Raises: ValueError with geth's text if it breaks a rule; LookupError if the network
        has no blocks; psycopg.Error.
    """
    # Serving processes load the libraries of precompiled contracts only when needed.
    from evm.chain_config import ChainConfig

    row = connection.execute(_HEAD, (network_id,)).fetchone()
    if row is None:
        raise LookupError("the network has no blocks yet")
    chain_id, genesis, encoded = row
    head = decode_header(bytes(encoded))
    fork = ChainConfig.from_genesis(genesis).fork_at(
        head.number, head.timestamp, is_merged=head.difficulty == 0
    )
    check_size(raw)
    submission = decode_submission(raw)
    check(submission, HeadRules(chain_id, fork, head.gas_limit, is_local=True))
    if submission.sidecar is not None:
        # This import loads c-kzg.
        from nodeapi.sending.proofs import verify_proofs

        verify_proofs(submission.sidecar, has_cell_proofs=fork.has_cell_proofs)
    add_transaction(connection, network_id, submission)


def next_nonce(
    connection: psycopg.Connection[Any], network_id: int, address: bytes
) -> int:
    """Return an account's nonce after its pending transactions.

    Raises: psycopg.Error.
    """
    values = {"network": network_id, "address": address}
    (nonce,) = connection.execute(_NEXT_NONCE, values).fetchone() or ("0",)
    return int(nonce)
