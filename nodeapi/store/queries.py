"""The store's SQL. `k` is the table of requested keys, see `postgres.lookup.Lookup`.

Every query is a chain of index probes. If a result depends on the canonical chain,
`head_hash` is read in the same snapshot, as the head that the result is valid for.
"""

from __future__ import annotations

_DOCUMENT = {False: "b.document", True: "b.full_document"}
"""Column of the block object: without, and with transaction objects (packed)."""

_BY_HASH = "nodeapi_block b ON b.network_id = k.network_id AND b.hash = k.hash"

_BY_NUMBER = """
    nodeapi_block b ON b.network_id = k.network_id
        AND b.number = k.number AND b.is_canonical
"""

_HEAD_HASH = "(SELECT head_hash FROM networks_network WHERE id = k.network_id)"


def block_by_hash(full: bool) -> str:
    """Return the query (network_id, hash) → document."""
    return f"SELECT k.n, {_DOCUMENT[full]} FROM k JOIN {_BY_HASH}"


def block_by_number(full: bool) -> str:
    """Return the query (network_id, number) → document, hash, head_hash."""
    return f"""
        SELECT k.n, {_DOCUMENT[full]}, b.hash, {_HEAD_HASH} FROM k JOIN {_BY_NUMBER}
    """


TRANSACTION = f"""
    SELECT k.n, t.document FROM k JOIN {_BY_HASH}
    JOIN nodeapi_transaction t ON t.block_id = b.id AND t.index = k.index
"""
"""(network_id, hash, index) → document."""

CANONICAL_HASH = f"SELECT k.n, b.hash, {_HEAD_HASH} FROM k JOIN {_BY_NUMBER}"
"""(network_id, number) → hash, head_hash."""

IS_CANONICAL = f"SELECT k.n, b.is_canonical FROM k JOIN {_BY_HASH}"
"""(network_id, hash) → is_canonical."""

STATE_ROOT = f"""
    SELECT k.n, b.state_root || int8send(b.number) FROM k JOIN {_BY_HASH}
"""
"""(network_id, hash) → state_root and number, as 32 and 8 bytes."""

LEVELS_READ = 8
"""Levels of a trie that one query reads. Most keys among a million are at level 6 or 7.
"""

_STORED_NODE = """
    SELECT t.node FROM nodeapi_trienode t
    WHERE t.network_id = k.network_id AND t.owner = k.owner
        AND t.path = substring(k.nibbles FOR d::int) LIMIT 1
"""

TRIE_NODES = f"""
    SELECT k.n, ARRAY(
        SELECT found.node FROM generate_series(k.depth, k.depth + {LEVELS_READ - 1}) d
        CROSS JOIN LATERAL ({_STORED_NODE}) found ORDER BY d
    ) FROM k
"""
"""(network_id, owner, nibbles, depth) → the nodes on the path of a key, from a depth on.

LIMIT makes PostgreSQL probe the index once for each level."""

FORMER_TRIE_NODES = f"""
    SELECT k.n, ARRAY(
        SELECT found.node FROM generate_series(k.depth, k.depth + {LEVELS_READ - 1}) d
        CROSS JOIN LATERAL (
            SELECT CASE WHEN later.is_found THEN later.node
                ELSE ({_STORED_NODE}) END AS node
            FROM (SELECT) one LEFT JOIN LATERAL (
                SELECT true AS is_found, v.node FROM nodeapi_trienodeversion v
                WHERE v.network_id = k.network_id AND v.owner = k.owner
                    AND v.path = substring(k.nibbles FOR d::int)
                    AND v.block_number > k.number
                ORDER BY v.block_number LIMIT 1
            ) later ON true
        ) found WHERE found.node IS NOT NULL ORDER BY d
    ) FROM k
"""
"""(network_id, owner, nibbles, depth, number) → the nodes as they were after a block.

If the network keeps no versions of that block's nodes, those of a later state are
returned, which have other hashes."""

_NEWEST_VALUE = """
    SELECT s.value FROM nodeapi_storageversion s
    WHERE s.network_id = {keys}.network_id AND s.address = {keys}.address
        AND s.slot = {keys}.slot AND s.block_number <= b.number
    ORDER BY s.block_number DESC LIMIT 1
"""

STORAGE_BY_HASH = f"""
    SELECT k.n, v.value, b.is_canonical FROM k JOIN {_BY_HASH}
    LEFT JOIN LATERAL ({_NEWEST_VALUE.format(keys="k")}) v ON true
"""
"""(network_id, hash, address, slot) → value (NULL: no row), is_canonical.

The value is only valid if is_canonical is true."""

STORAGE_BY_NUMBER = f"""
    SELECT k.n, v.value, b.hash, {_HEAD_HASH} FROM k JOIN {_BY_NUMBER}
    LEFT JOIN LATERAL ({_NEWEST_VALUE.format(keys="k")}) v ON true
"""
"""(network_id, number, address, slot) → value (NULL: no row), hash, head_hash."""

_BRANCH = """
    WITH RECURSIVE asked AS ({keys}), branch AS (
        SELECT b.id, b.number, b.parent_hash, b.is_canonical
        FROM asked JOIN nodeapi_block b
            ON b.network_id = asked.network_id AND b.hash = asked.hash
        UNION ALL
        SELECT p.id, p.number, p.parent_hash, p.is_canonical
        FROM branch CROSS JOIN asked JOIN nodeapi_block p
            ON p.network_id = asked.network_id AND p.hash = branch.parent_hash
        WHERE NOT branch.is_canonical
    )
    SELECT b.is_canonical,
        (SELECT d.diff FROM nodeapi_sidediff d WHERE d.block_id = b.id), {columns}
    FROM branch b CROSS JOIN asked
    LEFT JOIN LATERAL ({value}) v ON b.is_canonical
    ORDER BY b.number DESC
"""

STORAGE_ON_BRANCH = _BRANCH.format(
    keys="SELECT $1::int8 AS network_id, $2::bytea AS hash, $3::bytea AS address,"
    " $4::bytea AS slot",
    columns="v.value",
    value=_NEWEST_VALUE.format(keys="asked"),
)
"""network_id, hash, address, slot → one row for each block of the branch, newest first:
is_canonical, diff, value. The last row is the canonical fork point."""

_NEWEST_ACCOUNT = """
    SELECT a.nonce::text, a.balance::text, a.code_hash, a.storage_root, true AS is_known
    FROM nodeapi_accountversion a
    WHERE a.network_id = {keys}.network_id AND a.address = {keys}.address
        AND a.block_number <= b.number
    ORDER BY a.block_number DESC LIMIT 1
"""

_ACCOUNT = "v.nonce, v.balance, v.code_hash, v.storage_root"
"""Columns of an account, NULL if there is none, or if it is unknown."""

_CODE = {
    False: "NULL::bytea",
    True: "(SELECT c.code FROM nodeapi_code c WHERE c.hash = v.code_hash)",
}


def account_by_hash(with_code: bool) -> str:
    """Return the query (network_id, hash, address) → account, code, is_canonical.

    account: nonce, balance, code_hash and storage_root, NULL if there is no account. The
    first two are decimal digits. The code is NULL if there is none, or without
    `with_code`. The values are only valid if is_canonical is true.
    """
    return f"""
        SELECT k.n, {_ACCOUNT}, {_CODE[with_code]}, b.is_canonical
        FROM k JOIN {_BY_HASH}
        LEFT JOIN LATERAL ({_NEWEST_ACCOUNT.format(keys="k")}) v ON true
    """


def account_by_number(with_code: bool) -> str:
    """Return the query (network_id, number, address) → account, code, hash, head_hash.

    account, code: as in `account_by_hash`.
    """
    return f"""
        SELECT k.n, {_ACCOUNT}, {_CODE[with_code]}, b.hash, {_HEAD_HASH}
        FROM k JOIN {_BY_NUMBER}
        LEFT JOIN LATERAL ({_NEWEST_ACCOUNT.format(keys="k")}) v ON true
    """


ACCOUNT_ON_BRANCH = _BRANCH.format(
    keys="SELECT $1::int8 AS network_id, $2::bytea AS hash, $3::bytea AS address",
    columns=f"{_ACCOUNT}, v.is_known",
    value=_NEWEST_ACCOUNT.format(keys="asked"),
)
"""network_id, hash, address → one row for each block of the branch, newest first:
is_canonical, diff, account, is_known. The last row is the canonical fork point. is_known:
NULL without a row, which is an unknown account in a sparse state."""

_SINCE_CHECKPOINT = "b.number >= w.checkpoint_number"
_SPARSE = f"{_BY_HASH} JOIN networks_network w ON w.id = k.network_id"

SPARSE_ACCOUNT = f"""
    SELECT k.n, {_ACCOUNT}, v.is_known, b.is_canonical, {_SINCE_CHECKPOINT}
    FROM k JOIN {_SPARSE}
    LEFT JOIN LATERAL ({_NEWEST_ACCOUNT.format(keys="k")}) v ON true
"""
"""(network_id, hash, address) → account, is_known (NULL: unknown), is_canonical, and
whether the block is not below the checkpoint. For networks with a checkpoint only."""

SPARSE_SLOT = f"""
    SELECT k.n, a.is_known, a.storage_root, {_SINCE_CHECKPOINT}
    FROM k JOIN {_SPARSE}
    LEFT JOIN LATERAL (
        SELECT true AS is_known, a.storage_root FROM nodeapi_accountversion a
        WHERE a.network_id = k.network_id AND a.address = k.address
            AND a.block_number = w.checkpoint_number
    ) a ON true
"""
"""(network_id, hash, address) → what the checkpoint's state says of the slots that have no
row: is_known (NULL: the account is unknown there), its storage_root (NULL: all slots were
zero), and whether the block is not below the checkpoint."""
