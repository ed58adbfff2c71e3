"""An account at the head, and the transactions in which it appears."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from django.db import connection

from abi.addresses import checksummed
from evm.hexadecimal import to_hex
from evm.tracers.parties import CREATED
from explorer.rows import Place, summaries_at
from explorer.summaries import Summary
from legible import words
from networks.models import Network
from nodeapi.chain.appearances import read_places
from nodeapi.models import AccountVersion, Transaction

PAGE_SIZE = 25
"""Transactions on a page."""

SHOWN_CODE = 1024
"""Bytes of code on a page."""

_DELEGATION = bytes.fromhex("ef0100")
"""Beginning of the code of an account that delegates to another one.

Source: https://eips.ethereum.org/EIPS/eip-7702"""

_APPEARANCES = """
    SELECT a.block_number, b.id, a.places
    FROM nodeapi_appearance a JOIN nodeapi_block b ON b.network_id = a.network_id
        AND b.number = a.block_number AND b.is_canonical
    WHERE a.network_id = %s AND a.address = %s AND a.block_number <= %s
        AND a.places <> ''
    ORDER BY a.block_number DESC LIMIT %s
"""

_CREATION = """
    SELECT b.id, a.places
    FROM nodeapi_appearance a JOIN nodeapi_block b ON b.network_id = a.network_id
        AND b.number = a.block_number AND b.is_canonical
    WHERE a.network_id = %s AND a.address = %s AND a.is_creation
    ORDER BY a.block_number DESC LIMIT 1
"""


@dataclass(frozen=True, slots=True)
class Account:
    """An account after the head block, formatted as text."""

    address: str
    """With its checksum."""
    exists: bool
    balance: str
    nonce: str
    code_hash: str
    """Empty without code."""
    code: str
    """The first SHOWN_CODE bytes."""
    code_size: str
    delegate: str
    """The account whose code it executes (EIP-7702); else empty."""
    creation: str
    """Hash of the transaction that created the contract; empty if it is unknown."""
    is_known: bool
    """False for an account that was not fetched yet, since the network's checkpoint."""

    @property
    def kind(self) -> str:
        """The type of the account, such as `contract`."""
        if self.delegate:
            return "delegating account"
        return "contract" if self.code_hash else "account"


@dataclass(frozen=True, slots=True)
class Appearance:
    """A transaction in which an account appears.

    role: `out` if the account sent it, `in` if it is the recipient, `self` if both,
        `internal` if it only appears in calls.
    """

    summary: Summary
    block_number: int
    role: str


@dataclass(frozen=True, slots=True)
class Page:
    """A page of an account's transactions, the newest first.

    older: the cursor of the next page, None on the last one.
    """

    lines: list[Appearance]
    older: str | None
    first_executed: int | None
    """Number of the first executed block, if the network started at a checkpoint."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """The transaction before which a page begins."""

    number: int
    index: int


def find_account(network: Network, address: bytes) -> Account:
    """Return an account after the network's head."""
    versions = AccountVersion.objects.filter(network=network, address=address)
    found = versions.order_by("-block_number").first()
    exists = found is not None and found.nonce is not None
    code_hash, code, size = b"", b"", 0
    if found is not None and exists and found.code_hash is not None:
        code_hash = bytes(found.code_hash)
        code, size = _code(code_hash)
    is_delegating = code.startswith(_DELEGATION) and size == 23
    return Account(
        address=checksummed(address),
        exists=exists,
        balance=words.ether(int(found.balance or 0) if found else 0),
        nonce=words.number(int(found.nonce or 0) if found else 0),
        code_hash=f"0x{code_hash.hex()}" if code_hash else "",
        code=f"0x{code.hex()}{'…' if size > len(code) else ''}",
        code_size=words.count(size, "byte"),
        delegate=checksummed(code[3:]) if is_delegating else "",
        creation=_creation(network, address) if code_hash else "",
        is_known=found is not None or network.checkpoint_number is None,
    )


def transactions(network: Network, address: bytes, before: Cursor | None) -> Page:
    """Return a page of the canonical transactions in which an account appears."""
    number = (network.head_number or 0) if before is None else before.number
    with connection.cursor() as cursor:
        # All transactions of the cursor's block may be on earlier pages.
        cursor.execute(_APPEARANCES, [network.pk, address, number, PAGE_SIZE + 2])
        blocks = [(row[0], row[1], bytes(row[2])) for row in cursor]
    found = list(islice(_places(blocks, before), PAGE_SIZE + 1))
    shown = found[:PAGE_SIZE]
    by_place = summaries_at([place for _, place in shown])
    lines = [
        Appearance(by_place[place], number, _role(by_place[place], address))
        for number, place in shown
        if place in by_place  # otherwise a reorganisation has just removed it
    ]
    older = None
    if len(found) > PAGE_SIZE:
        number, (_, index) = shown[-1]
        older = f"{number}-{index}"
    checkpoint = network.checkpoint_number
    first_executed = None if checkpoint is None else checkpoint + 1
    return Page(lines, older, first_executed)


def parse_cursor(text: str) -> Cursor:
    """Return the cursor that `Page.older` contains. Raises: ValueError."""
    number, _, index = text.partition("-")
    if not (number.isdecimal() and index.isdecimal() and len(text) <= 28):
        raise ValueError("not a cursor")
    return Cursor(min(int(number), 2**63 - 1), int(index))


def _places(
    blocks: Sequence[tuple[int, int, bytes]], before: Cursor | None
) -> Iterator[tuple[int, Place]]:
    """Yield numbers of blocks and places of transactions, the newest first."""
    for number, block_id, places in blocks:
        indexes = [index for index, _ in read_places(places)]
        for index in reversed(indexes):
            if before is None or (number, index) < (before.number, before.index):
                yield number, (block_id, index)


def _role(summary: Summary, address: bytes) -> str:
    own = checksummed(address)
    is_sender, is_recipient = summary.sender == own, summary.to == own
    if is_sender:
        return "self" if is_recipient else "out"
    return "in" if is_recipient else "internal"


def _code(code_hash: bytes) -> tuple[bytes, int]:
    """Return the beginning of a code, and the number of its bytes."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT substring(code FROM 1 FOR %s), length(code)"
            " FROM nodeapi_code WHERE hash = %s",
            [SHOWN_CODE, code_hash],
        )
        row = cursor.fetchone()
    return (b"", 0) if row is None else (bytes(row[0]), row[1])


def _creation(network: Network, address: bytes) -> str:
    """Return the hash of the transaction that created a contract last, "" if unknown."""
    with connection.cursor() as cursor:
        cursor.execute(_CREATION, [network.pk, address])
        row = cursor.fetchone()
    if row is None:
        return ""
    block_id, places = row
    created = [index for index, roles in read_places(bytes(places)) if roles & CREATED]
    found = Transaction.objects.filter(block_id=block_id, index__in=created[-1:])
    name = found.values_list("hash", flat=True).first()
    return "" if name is None else to_hex(name)
