"""SQL for the rows of the local pool that are not outdated.

A row is outdated after LIFETIME, when a block has used its nonce, and when its sender's
balance is lower than its cost. Nothing has to update the pool when a block is imported,
because the condition reads the sender's account at the head.
"""

from __future__ import annotations

LIFETIME = "3 hours"
"""Time for which a transaction stays in the pool, as an interval of PostgreSQL. geth
applies it to queued transactions only, because its pending ones end up in blocks."""

ACCOUNT = """
    SELECT v.nonce, v.balance, v.code_hash FROM nodeapi_accountversion v
    WHERE v.network_id = {network} AND v.address = {address}
    ORDER BY v.block_number DESC LIMIT 1
"""
"""The account with an address at the head: no row, or a row of NULLs, if there is none."""

IS_ALIVE = f"""
    p.at > now() - interval '{LIFETIME}'
    AND p.nonce >= coalesce(a.nonce, 0) AND p.cost <= coalesce(a.balance, 0)
"""
"""The condition for a pooled transaction p, and its sender's account a."""

OF_SENDER = ACCOUNT.format(network="p.network_id", address="p.sender")


def alive(network: str, sender: str | None = None) -> str:
    """Return the query for the pooled transactions of a network that are not outdated.

    Besides the table's columns, it has `is_pending`: whether all nonces from the
    account's nonce on up to this one are in the pool. Otherwise it is queued.

    network, sender: SQL of the network's id and of an address. Without an address, the
        query finds the transactions of all senders.
    """
    only = "" if sender is None else f"AND p.sender = {sender}"
    return f"""
        SELECT r.*, r.nonce = r.next_nonce + r.place - 1 AS is_pending
        FROM (
            SELECT p.*, coalesce(a.nonce, 0) AS next_nonce,
                row_number() OVER (PARTITION BY p.sender ORDER BY p.nonce) AS place
            FROM nodeapi_pooledtransaction p
            LEFT JOIN LATERAL ({OF_SENDER}) a ON true
            WHERE p.network_id = {network} {only} AND {IS_ALIVE}
        ) r
    """


def next_nonce_query(network: str, address: str) -> str:
    """Return the query for an account's nonce after its pending transactions, as text.

    network, address: SQL of the network's id and of the address.
    """
    account = ACCOUNT.format(network=network, address=address)
    return f"""
        SELECT (
            coalesce((SELECT nonce FROM ({account}) a), 0)
            + (SELECT count(*) FROM ({alive(network, address)}) t WHERE is_pending)
        )::text
    """
