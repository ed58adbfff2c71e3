"""The access list of a block, and its gas in two dimensions, prepared for its page."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

from abi.addresses import checksummed
from evm import rlp
from evm.block_access_list import ListedAccount, decode_access_list
from evm.tracers.record import RecordDamaged, unpack
from legible import words
from nodeapi.models import Block, BlockAccessList

MAX_LINES = 500
"""Lines that a page shows."""
OPEN_LINES = 30
"""Lines up to which the list is open when the page is shown."""
MAX_SLOTS = 100
"""Slots of one account that were only read, as a page shows them."""
MAX_LIST_BYTES = 2**20
"""Size of a list above which a page does not show it. Decoding this takes 0.2 s."""


@dataclass(frozen=True, slots=True)
class Gas:
    """Gas in two dimensions, formatted as text (EIP-8037)."""

    execution: str
    state: str


@dataclass(frozen=True, slots=True)
class ListLine:
    """A change of an account, or its slots that were only read."""

    address: str
    """With a checksum; empty if it is that of the line above."""
    what: str
    slot: str
    """Empty except for a storage slot."""
    when: str
    """The part of the block after which the account has the value."""
    value: str
    is_hexadecimal: bool = False


@dataclass(frozen=True, slots=True)
class ShownList:
    """The first lines of a list. hidden: number of further ones."""

    accounts: str
    """Their number with the noun."""
    lines: list[ListLine]
    hidden: int

    @property
    def is_open(self) -> bool:
        """Whether the list is short enough to be open from the start."""
        return len(self.lines) <= OPEN_LINES


def find_list(block: Block) -> BlockAccessList | None:
    """Return the stored list of a block, None if there is none."""
    return BlockAccessList.objects.filter(block=block).first()


def find_gas(block: Block) -> BlockAccessList | None:
    """Return the row of `find_list` without reading the list, which may be long."""
    return BlockAccessList.objects.filter(block=block).defer("list").first()


def gas_of(found: BlockAccessList | None, index: int | None = None) -> Gas | None:
    """Return the gas of a block, or of one of its transactions.

    None before Amsterdam, and without a stored list.
    """
    if found is None or not found.gas:
        return None
    execution = state = 0
    for at, pair in enumerate(rlp.decode_list(rlp.decode(bytes(found.gas)))):
        if index in (None, at):
            used, used_for_state = map(rlp.decode_int, rlp.decode_list(pair))
            execution += used
            state += used_for_state
    return Gas(words.number(execution), words.number(state))


def shown_list(found: BlockAccessList | None, transactions: int) -> ShownList | None:
    """Return a list's lines; None without a stored list, and for one that is too long.

    transactions: their number in the block.
    """
    raw = b""
    if found is not None:
        # A damaged list is one that can't be shown.
        with suppress(RecordDamaged):
            raw = unpack(bytes(found.list))
    if not raw or len(raw) > MAX_LIST_BYTES:
        return None
    accounts = list(decode_access_list(raw))
    lines = (line for one in accounts for line in _lines(one, transactions))
    shown = list(islice(lines, MAX_LINES))
    hidden = sum(1 for _ in lines)
    return ShownList(words.count(len(accounts), "account"), shown, hidden)


def _lines(one: ListedAccount, transactions: int) -> Iterator[ListLine]:
    """Yield the lines of an account, at least one."""
    address = checksummed(one.address)
    for line in _changes(one, transactions):
        yield ListLine(address, *line)
        address = ""
    reads = ", ".join(f"{slot:#x}" for slot in one.reads[:MAX_SLOTS])
    if len(one.reads) > MAX_SLOTS:
        reads += f" and {words.number(len(one.reads) - MAX_SLOTS)} more"
    if reads or address:
        what = "slots read" if reads else "read"
        yield ListLine(address, what, "", "", reads, is_hexadecimal=bool(reads))


def _changes(
    one: ListedAccount, transactions: int
) -> Iterator[tuple[str, str, str, str, bool]]:
    """Yield the members of `ListLine` after the address."""

    def when(index: int) -> str:
        if index == 0:
            return "the block's start"
        if index > transactions:
            return "the block's end"
        return f"transaction {index - 1}"

    for index, balance in one.balances:
        yield "balance", "", when(index), words.ether(balance), False
    for index, nonce in one.nonces:
        yield "nonce", "", when(index), words.number(nonce), False
    for index, code in one.codes:
        size = words.count(len(code), "byte") if code else "no code"
        yield "code", "", when(index), size, False
    for slot, changes in one.storage.items():
        for index, value in changes:
            yield "storage", f"{slot:#x}", when(index), f"{value:#x}", True
