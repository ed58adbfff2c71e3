"""The JSON of `txpool_content`, `txpool_contentFrom`, `txpool_inspect` and `_status`.

Blob transactions are counted, and not listed. geth does the same.

Source: go-ethereum v1.17.10, internal/ethapi/api.go, TxPoolAPI
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import orjson
from eth_utils.address import to_checksum_address

from nodeapi.encoding import quantity


@dataclass(frozen=True, slots=True)
class Listed:
    """A pooled transaction. document: the pending transaction object as JSON."""

    sender: bytes
    nonce: int
    is_pending: bool
    document: bytes


def status(pending: int, queued: int) -> bytes:
    """Return the numbers of transactions."""
    return b'{"pending":%s,"queued":%s}' % (quantity(pending), quantity(queued))


def content(listed: Iterable[Listed]) -> bytes:
    """Return the transaction objects by address and nonce."""
    return _by_sender(listed, lambda one: one.document)


def content_from(listed: Iterable[Listed]) -> bytes:
    """Return one sender's transaction objects by nonce."""
    return _in_two_groups(listed, _by_nonce, lambda one: one.document)


def inspect(listed: Iterable[Listed]) -> bytes:
    """Return a line of text for each transaction, by address and nonce."""
    return _by_sender(listed, lambda one: orjson.dumps(_line(one.document)))


_Write = Callable[[Listed], bytes]
_Group = Callable[[list[Listed], _Write], bytes]


def _in_two_groups(listed: Iterable[Listed], group: _Group, write: _Write) -> bytes:
    pending: list[Listed] = []
    queued: list[Listed] = []
    for one in listed:
        (pending if one.is_pending else queued).append(one)
    return b'{"pending":%s,"queued":%s}' % (group(pending, write), group(queued, write))


def _by_sender(listed: Iterable[Listed], write: _Write) -> bytes:
    return _in_two_groups(listed, _senders, write)


def _senders(listed: list[Listed], write: _Write) -> bytes:
    by_sender: dict[bytes, list[Listed]] = {}
    for one in listed:
        by_sender.setdefault(one.sender, []).append(one)
    members = [
        b'"%s":%s' % (to_checksum_address(sender).encode(), _by_nonce(own, write))
        for sender, own in by_sender.items()
    ]
    return b"{" + b",".join(members) + b"}"


def _by_nonce(listed: list[Listed], write: _Write) -> bytes:
    return (
        b"{" + b",".join(b'"%d":%s' % (one.nonce, write(one)) for one in listed) + b"}"
    )


def _line(document: bytes) -> str:
    """Return recipient, value and gas of a transaction object as geth prints them."""
    found = orjson.loads(document)
    to = found["to"]
    value, gas, price = (int(found[name], 16) for name in ("value", "gas", "gasPrice"))
    recipient = "contract creation" if to is None else to_checksum_address(to)
    return f"{recipient}: {value} wei + {gas} gas × {price} wei"
