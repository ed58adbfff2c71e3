"""Logs of a transaction, as lines of its page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from abi.addresses import checksummed
from abi.decoding import DecodedLog, decode_log
from evm.addresses import SYSTEM_ADDRESS
from explorer.abis import Abis
from explorer.arguments import ArgumentLines, argument_lines
from legible import words
from nodeapi.documents.receipt_codec import measure
from nodeapi.documents.receipts import split_logs, stored_logs

MAX_LINES = 30
"""Lines of arguments that are shown for a log."""

MAX_VALUES = 200
"""Decoded values of a log."""

MAX_RECEIPT_BYTES = 16 * 2**20
"""Receipts with more bytes are not unpacked for a page."""

_MEMBERS = re.compile(
    rb'\{"address":"0x(?P<address>\w{40})","topics":\[(?P<topics>[^\]]*)\]'
    rb',"data":"0x(?P<data>\w*)",@,"logIndex":"0x(?P<index>\w+)"'
)


@dataclass(frozen=True, slots=True)
class ReceiptLog:
    """A log in a stored receipt. index: its number in the block."""

    address: bytes
    topics: tuple[bytes, ...]
    data: bytes
    index: int


@dataclass(frozen=True, slots=True)
class LogLine:
    """A log, formatted as text."""

    index: str
    address: str
    is_ether: bool
    """Whether this is the protocol's log of a transfer of ether (EIP-7708)."""
    name: str
    """The event's name; empty if it is unknown."""
    signature: str
    interfaces: str
    arguments: ArgumentLines | None
    """None if the event is unknown."""
    topics: list[str]
    data: str
    size: str


def receipt_logs(stored_receipt: bytes) -> list[ReceiptLog] | None:
    """Return the logs of a stored receipt, None if it is too long for a page.

    Raises: ValueError if the receipt is malformed.
    """
    size, _ = measure(stored_receipt)
    if size > MAX_RECEIPT_BYTES:
        return None
    return [_log(text) for text in split_logs(stored_logs(stored_receipt))]


def decoded_log(log: ReceiptLog, abis: Abis) -> DecodedLog | None:
    """Decode a log, None if its event is unknown."""
    # Uploaded definitions have no influence on what the protocol logs.
    own = None if log.address == SYSTEM_ADDRESS else abis.of(log.address)
    return decode_log(log.topics, log.data, own, MAX_VALUES)


def log_line(log: ReceiptLog, abis: Abis) -> LogLine:
    """Format a log."""
    decoded = decoded_log(log, abis)
    is_ether = log.address == SYSTEM_ADDRESS and decoded is not None
    return LogLine(
        is_ether=is_ether,
        index=words.number(log.index),
        address=checksummed(log.address),
        name=decoded.name if decoded else "",
        signature=decoded.signature if decoded else "",
        interfaces=", ".join(decoded.interfaces) if decoded else "",
        arguments=_arguments(decoded, is_ether) if decoded else None,
        topics=[f"0x{topic.hex()}" for topic in log.topics],
        data=words.hexadecimal(log.data),
        size=words.count(len(log.data), "byte"),
    )


def _arguments(decoded: DecodedLog, is_ether: bool) -> ArgumentLines:
    """Return the lines of a log's arguments. is_ether: see `LogLine`."""
    found = argument_lines(decoded.arguments, decoded.is_complete, MAX_LINES)
    if not is_ether:
        return found
    lines = [
        replace(line, text=words.ether(argument.value))
        if isinstance(argument.value, int)
        else line
        for line, argument in zip(found.lines, decoded.arguments, strict=True)
    ]
    return replace(found, lines=lines)


def topics_of(logs: Sequence[ReceiptLog]) -> set[bytes]:
    """Return the topics by which events are looked up."""
    return {log.topics[0] for log in logs if log.topics}


def _log(text: bytes) -> ReceiptLog:
    found = _MEMBERS.match(text)
    if found is None:
        raise ValueError("a stored receipt has a malformed log")
    address, topics, data, index = found.groups()
    return ReceiptLog(
        address=bytes.fromhex(address.decode()),
        topics=tuple(
            bytes.fromhex(topic[3:-1].decode()) for topic in topics.split(b",") if topic
        ),
        data=bytes.fromhex(data.decode()),
        index=int(index, 16),
    )
