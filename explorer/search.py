"""Search for blocks, transactions and addresses by number, hash or prefix.

Each look-up uses an index and reads a limited number of rows, for any search text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import connection
from django.urls import reverse

from abi.addresses import WrongChecksum, checksummed, parse_address
from evm.hexadecimal import to_hex
from networks.models import Network
from nodeapi.models import AccountVersion, Block

MAX_TEXT = 200
"""Characters of a search text that are read."""

MIN_DIGITS = 4
"""Minimum number of digits of a prefix. Too many hashes begin with shorter ones."""

MAX_FOUND = 10
"""Results of one kind for a prefix, in each network."""

_MAX_TRANSACTIONS = 1000
"""Transactions with a prefix that are read, of all networks together. Those of networks
that the visitor can't see are among them."""

_MAX_NUMBER = 2**63 - 1

_NUMBER = re.compile(r"[0-9][0-9,_' ]*")
_DIGITS = re.compile(r"(?:0[xX])?([0-9a-fA-F]+)")

_BLOCKS = """
    SELECT n.id, found.hash, found.number
    FROM unnest(%(networks)s::bigint[]) AS n (id) CROSS JOIN LATERAL (
        SELECT b.hash, b.number FROM nodeapi_block b
        WHERE b.network_id = n.id AND b.hash BETWEEN %(low)s AND %(high)s
        ORDER BY b.hash LIMIT %(limit)s
    ) AS found
"""

_TRANSACTIONS = """
    SELECT DISTINCT b.network_id, found.hash, b.number, b.is_canonical
    FROM (
        SELECT t.block_id, t.hash FROM nodeapi_transaction t
        WHERE t.hash BETWEEN %(low)s AND %(high)s ORDER BY t.hash LIMIT %(most)s
    ) AS found JOIN nodeapi_block b ON b.id = found.block_id
    WHERE b.network_id = ANY(%(networks)s)
    ORDER BY found.hash, b.is_canonical DESC
"""

_COUNT = """
    SELECT count(*) FROM (
        SELECT FROM nodeapi_transaction t
        WHERE t.hash BETWEEN %s AND %s LIMIT %s
    ) AS found
"""

_ADDRESSES = """
    SELECT n.id, found.address
    FROM unnest(%(networks)s::bigint[]) AS n (id) CROSS JOIN LATERAL (
        WITH RECURSIVE step (address, place) AS (
            SELECT (
                SELECT v.address FROM nodeapi_accountversion v
                WHERE v.network_id = n.id AND v.address BETWEEN %(low)s AND %(high)s
                ORDER BY v.address LIMIT 1
            ), 1
            UNION ALL
            SELECT (
                SELECT v.address FROM nodeapi_accountversion v
                WHERE v.network_id = n.id AND v.address > step.address
                    AND v.address <= %(high)s
                ORDER BY v.address LIMIT 1
            ), step.place + 1
            FROM step WHERE step.address IS NOT NULL AND step.place < %(limit)s
        )
        SELECT address FROM step WHERE address IS NOT NULL
    ) AS found
"""
"""Each step jumps to the next address, past all versions of the one before."""


@dataclass(frozen=True, slots=True)
class Found:
    """A result. kind: `block`, `transaction` or `address`; note: may be empty."""

    kind: str
    network: Network
    text: str
    path: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Results:
    """The results of a search.

    advice: why there are none, or none of a kind; may be empty.
    maybe_pending: the hash of a transaction that could be pending, else empty.
    is_complete: whether all candidates were read.
    """

    found: list[Found] = field(default_factory=list)
    advice: str = ""
    maybe_pending: str = ""
    is_complete: bool = True


def search(networks: Sequence[Network], text: str) -> Results:
    """Search in networks for a block number, a hash, an address, or a prefix of these."""
    text = text[:MAX_TEXT].strip()
    if _NUMBER.fullmatch(text) and len(_plain(text)) <= 20:
        return _by_number(networks, int(_plain(text)))
    digits = _DIGITS.fullmatch(text)
    if digits is None:
        return Results(
            advice="Enter a block number, a hash, an address, or the first digits of a "
            "hash or address. The prefix 0x is optional."
        )
    prefix = digits[1].lower()
    if len(prefix) > 64:
        return Results(
            advice="This is too long: a hash has 64 digits, an address has 40."
        )
    if len(prefix) == 64:
        return _by_hash(networks, bytes.fromhex(prefix))
    if len(prefix) == 40:
        try:
            return _by_address(networks, parse_address(text))
        except WrongChecksum:
            return Results(
                advice="The checksum of this address is wrong: a digit may be mistyped. "
                "Check the address, or enter it in lower case."
            )
    if len(prefix) < MIN_DIGITS:
        return Results(
            advice=f"Enter at least {MIN_DIGITS} digits of a hash or address."
        )
    return _by_prefix(networks, prefix)


def _plain(text: str) -> str:
    return re.sub(r"\D", "", text)


def _by_number(networks: Sequence[Network], number: int) -> Results:
    blocks = Block.objects.filter(
        network__in=networks, number=min(number, _MAX_NUMBER), is_canonical=True
    )
    by_id = {network.pk: network for network in networks}
    found = [
        Found(
            "block",
            network := by_id[network_id],
            f"Block {number:,}",
            reverse("explore:block_by_number", args=[network.slug, number]),
        )
        for network_id in blocks.values_list("network_id", flat=True)
    ]
    return Results(found, "" if found else f"No network has a block {number:,} yet.")


def _by_hash(networks: Sequence[Network], name: bytes) -> Results:
    found = [*_blocks(networks, name, name), *_transactions(networks, name, name)]
    if found:
        return Results(found)
    return Results(
        advice="No block or transaction with this hash was found.",
        maybe_pending=f"0x{name.hex()}",
    )


def _by_address(networks: Sequence[Network], address: bytes) -> Results:
    versions = AccountVersion.objects.filter(address=address)
    # A network that started at a checkpoint does not know all used addresses.
    known = [
        one
        for one in networks
        if one.checkpoint_number is not None or versions.filter(network=one).exists()
    ]
    found = [_address(network, address) for network in known or networks]
    return Results(found, "" if known else "This address has not been used yet.")


def _by_prefix(networks: Sequence[Network], prefix: str) -> Results:
    found: list[Found] = []
    if len(prefix) < 40:
        found += _addresses(networks, *_range(prefix, 40))
    low, high = _range(prefix, 64)
    found += _blocks(networks, low, high)
    transactions = list(_transactions(networks, low, high))
    found += transactions
    if len(transactions) < MAX_FOUND and _are_too_many(low, high):
        return Results(
            found,
            "Too many transaction hashes begin with these digits. Enter more digits.",
            is_complete=False,
        )
    return Results(
        found, "" if found else "No hash or address begins with these digits."
    )


def _are_too_many(low: bytes, high: bytes) -> bool:
    """Return whether there are transactions in a range that are not read."""
    with connection.cursor() as cursor:
        cursor.execute(_COUNT, [low, high, _MAX_TRANSACTIONS + 1])
        (count,) = cursor.fetchone()
    return bool(count > _MAX_TRANSACTIONS)


def _range(prefix: str, digits: int) -> tuple[bytes, bytes]:
    """Return the lowest and the highest value with a prefix."""
    return (
        bytes.fromhex(prefix.ljust(digits, "0")),
        bytes.fromhex(prefix.ljust(digits, "f")),
    )


def _blocks(networks: Sequence[Network], low: bytes, high: bytes) -> Iterator[Found]:
    for network, name, number in _rows(_BLOCKS, networks, low, high):
        text = to_hex(name)
        path = reverse("explore:block", args=[network.slug, text])
        yield Found("block", network, text, path, f"block {number:,}")


def _transactions(
    networks: Sequence[Network], low: bytes, high: bytes
) -> Iterator[Found]:
    seen: set[tuple[int, str]] = set()
    for network, name, number, is_canonical in _rows(
        _TRANSACTIONS, networks, low, high
    ):
        text = to_hex(name)
        if (network.pk, text) in seen or len(seen) >= MAX_FOUND * len(networks):
            continue
        seen.add((network.pk, text))
        path = reverse("explore:transaction", args=[network.slug, text])
        note = f"in block {number:,}" if is_canonical else f"in side block {number:,}"
        yield Found("transaction", network, text, path, note)


def _addresses(networks: Sequence[Network], low: bytes, high: bytes) -> Iterator[Found]:
    for network, address in _rows(_ADDRESSES, networks, low, high):
        yield _address(network, bytes(address))


def _address(network: Network, address: bytes) -> Found:
    text = checksummed(address)
    path = reverse("explore:address", args=[network.slug, text])
    return Found("address", network, text, path)


def _rows(
    query: str, networks: Sequence[Network], low: bytes, high: bytes
) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a query, with the network instead of its id."""
    by_id = {network.pk: network for network in networks}
    wanted: dict[str, Any] = {
        "networks": list(by_id),
        "low": low,
        "high": high,
        "limit": MAX_FOUND,
        "most": _MAX_TRANSACTIONS,
    }
    with connection.cursor() as cursor:
        cursor.execute(query, wanted)
        for network_id, *columns in cursor.fetchall():
            yield (by_id[network_id], *columns)
