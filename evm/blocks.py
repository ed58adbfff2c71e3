"""Blocks: a header, transactions, uncles and, since Shanghai, withdrawals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from eth_typing import Address

from evm import rlp
from evm.errors import InvalidBlock
from evm.headers import Header, decode_header, header_from_items
from evm.rlp import RlpError, decode_bytes, decode_int
from evm.signatures import keccak
from evm.transactions import Transaction, decode_transaction


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """A payment from the consensus layer to an account (EIP-4895)."""

    index: int
    validator_index: int
    address: Address
    amount_gwei: int

    def items(self) -> list[bytes]:
        """Return the fields as RLP items."""
        return [
            rlp.encode_int(self.index),
            rlp.encode_int(self.validator_index),
            self.address,
            rlp.encode_int(self.amount_gwei),
        ]

    def encode(self) -> bytes:
        """Return the RLP, which also is the value in the withdrawals trie."""
        return rlp.encode(self.items())


@dataclass(frozen=True)
class Block:
    """A block: header, transactions, uncles and withdrawals."""

    header: Header
    transactions: Sequence[Transaction] = ()
    uncles: Sequence[Header] = ()
    withdrawals: Sequence[Withdrawal] | None = None
    """From Shanghai on; None before."""

    @cached_property
    def size(self) -> int:
        """Length of the block's RLP in bytes."""
        return len(encode_block(self))


def encode_block(block: Block) -> bytes:
    """Return the block's RLP."""
    return rlp.wrap_list(block.header.encode() + _body_payload(block))


def encode_body(block: Block) -> bytes:
    """Return the RLP of all but the header: [transactions, uncles, withdrawals?]."""
    return rlp.wrap_list(_body_payload(block))


def _body_payload(block: Block) -> bytes:
    payload = rlp.wrap_list(
        b"".join(
            [
                rlp.encode(transaction.raw) if transaction.type else transaction.raw
                for transaction in block.transactions
            ]
        )
    )
    payload += rlp.encode([uncle.items() for uncle in block.uncles])
    if block.withdrawals is not None:
        payload += rlp.encode([withdrawal.items() for withdrawal in block.withdrawals])
    return payload


def decode_headers(raw: bytes) -> tuple[Header, list[Header]]:
    """Return the header of a stored block and the headers of its uncles.

    raw: the block's RLP. Its transactions are not decoded.
    """
    header, _, uncles = rlp.list_items(raw)[:3]
    return (
        header_from_items(rlp.decode(header)),
        _headers(uncles),
    )


def decode_uncles(body: bytes) -> list[Header]:
    """Return the headers of a block's uncles. body: the result of `encode_body`."""
    return _headers(rlp.list_items(body)[1])


def _headers(uncles: bytes) -> list[Header]:
    return [header_from_items(items) for items in rlp.decode_list(rlp.decode(uncles))]


def decode_block(raw: bytes) -> Block:
    """Decode a block of any fork from RLP.

    Raises: RlpError naming the malformed part.
    """
    parts = rlp.list_items(raw)
    if len(parts) not in (3, 4):
        raise RlpError(f"a block is a list of 3 or 4 parts, not {len(parts)}")
    try:
        header = decode_header(parts[0])
    except RlpError as error:
        raise RlpError(f"header: {error}") from error
    return _decode_parts(header, parts[1:])


_LIST_HASH = 21
"""Index of a header's field with the hash of the access list."""


def without_access_list(raw: bytes) -> bytes:
    """Return the RLP of an exported block in the form in which nodes send it.

    From Amsterdam on, `geth export` adds the block's access list as a fifth part, if it
    is known. Other blocks are returned unchanged.

    Raises: InvalidBlock if the header does not have the list's hash; RlpError.

    Source: go-ethereum v1.17.10, cmd/utils/cmd.go `exportBlock`
    """
    parts = rlp.list_items(raw)
    if len(parts) != 5:
        return raw
    # Headers of later forks can't be decoded, but have this field as well.
    fields = rlp.list_items(parts[0])
    promised = rlp.decode(fields[_LIST_HASH]) if len(fields) > _LIST_HASH else None
    found = keccak(parts[4])
    if promised != found:
        header = decode_header(parts[0])
        reason = "block had access list before Amsterdam"
        if header.block_access_list_hash is not None:
            reason = (
                f"access list hash mismatch, computed: {found.hex()}, "
                f"remote: {header.block_access_list_hash.hex()}"
            )
        raise InvalidBlock(header, "block access list hash", reason)
    return rlp.wrap_list(b"".join(parts[:4]))


def decode_body(header: Header, body: bytes) -> Block:
    """Return a block from its header and the result of `encode_body`.

    Raises: RlpError if the body is malformed.
    """
    parts = rlp.list_items(body)
    if len(parts) not in (2, 3):
        raise RlpError(f"a body is a list of 2 or 3 parts, not {len(parts)}")
    return _decode_parts(header, parts)


def _decode_parts(header: Header, parts: Sequence[bytes]) -> Block:
    uncles = rlp.decode(parts[1])
    if not isinstance(uncles, list):
        raise RlpError("uncles: expected a list, found a string")
    withdrawals = None
    if len(parts) == 3:
        withdrawals = _decode_withdrawals(rlp.decode(parts[2]))
    return Block(
        header=header,
        transactions=_decode_transactions(parts[0]),
        uncles=tuple(header_from_items(items) for items in uncles),
        withdrawals=withdrawals,
    )


def _decode_transactions(data: bytes) -> tuple[Transaction, ...]:
    transactions = []
    for index, item in enumerate(rlp.list_items(data)):
        try:
            # Legacy transactions are lists. Others are byte strings.
            is_list, start, end = rlp.span(item, 0, len(item))
            raw = item if is_list else item[start:end]
            transaction = decode_transaction(raw)
            if not is_list and transaction.type == 0:
                raise RlpError("a legacy transaction inside a string")
        except RlpError as error:
            raise RlpError(f"transaction {index}: {error}") from error
        transactions.append(transaction)
    return tuple(transactions)


def _decode_withdrawals(items: rlp.Decoded) -> tuple[Withdrawal, ...]:
    if not isinstance(items, list):
        raise RlpError("withdrawals: expected a list, found a string")
    withdrawals = []
    for item in items:
        if not isinstance(item, list) or len(item) != 4:
            raise RlpError("a withdrawal is a list of 4 fields")
        index, validator_index, address, amount = item
        withdrawals.append(
            Withdrawal(
                decode_int(index, 8),
                decode_int(validator_index, 8),
                Address(decode_bytes(address, 20)),
                decode_int(amount, 8),
            )
        )
    return tuple(withdrawals)
