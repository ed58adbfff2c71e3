"""Verified blocks and headers from one upstream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from http import HTTPStatus
from typing import Any

from eth_typing import Hash32

from evm.headers import Header
from evm.hexadecimal import to_hex
from nodeapi.upstreams.block_rlp import (
    data,
    header_of,
    rebuild_block,
    uncle_hashes,
    unknown_types,
    verified,
)
from nodeapi.upstreams.client import MAX_BLOCK_BYTES, UpstreamClient
from nodeapi.upstreams.errors import (
    MethodUnavailable,
    UnknownTransactionType,
    UpstreamError,
    UpstreamUnavailable,
    WrongBlock,
)

PRUNED = 4444
"""Error code for history that a node has deleted.

Source: execution-apis, error codes; EIP-4444
"""

_UNKNOWN_TAG_CODES = {-32000, -39001}
"""Error codes for `safe` or `finalized` before such a block exists: geth's; Besu's and
Erigon's. Other nodes return null."""

_NOT_FOUND = -32000
_INVALID_PARAMS = -32602

REFUSING_STATUSES = {
    HTTPStatus.UNAUTHORIZED,
    HTTPStatus.FORBIDDEN,
    HTTPStatus.NOT_FOUND,
    HTTPStatus.METHOD_NOT_ALLOWED,
}
"""HTTP statuses by which a gateway refuses a method."""

MAX_HEADER_BYTES = 8 * 2**20
"""Maximum size of a response with a block object without transaction objects. A block of
8 MiB, the largest since Osaka, has at most 80,000 transactions, whose hashes are 6 MB."""

MAX_HEADERS_BYTES = 32 * 2**20
"""Maximum size of a response with `HEADERS_AT_ONCE` such objects. Each is hardly ever larger
than 1 MB, which are the hashes of 15,000 transactions."""

HEADERS_AT_ONCE = 25

_MAX_FAILURES = 3
"""Number of successive failures of `debug_getRawBlock` for existing blocks after which it
is not called any more."""


@dataclass(frozen=True, slots=True)
class BlockRef:
    """A block's hash, number, parent hash and timestamp, in Unix seconds.

    The fields are consistent, because the hash was computed from the header.

    is_of_amsterdam: whether the header has the fields of Amsterdam.
    """

    number: int
    hash: Hash32
    parent_hash: Hash32
    timestamp: int
    is_of_amsterdam: bool = False


class RawMode(IntEnum):
    """How `debug_getRawBlock` is called."""

    BY_HASH = 0
    """With the block's hash, for geth, reth and Erigon."""
    BY_NUMBER = 1
    """With the block's number, for Besu and Nethermind."""
    NEVER = 2
    """Not called. Blocks are rebuilt from JSON."""


class BlockSource:
    """Reads blocks from one upstream.

    It keeps the mode in which the upstream offers `debug_getRawBlock`. Calls may run
    concurrently.

    All methods raise UpstreamUnavailable or UpstreamError if a call fails, and WrongBlock
    if the returned data is not the requested data. None means that the upstream does not
    have the block, at least not yet.
    """

    def __init__(self, client: UpstreamClient) -> None:
        self.client = client
        self.raw_mode = RawMode.BY_HASH
        self._failures = 0

    async def head(self, tag: str = "latest") -> BlockRef | None:
        """Return the block of a tag: `latest`, `safe` or `finalized`."""
        try:
            return _found(await self._by_number(tag))
        except UpstreamError as error:
            if tag != "latest" and error.code in _UNKNOWN_TAG_CODES:
                return None
            raise

    async def at(self, number: int) -> BlockRef | None:
        """Return the block with a number on the upstream's canonical chain."""
        return _at(number, await self._by_number(hex(number)))

    async def at_each(self, numbers: Sequence[int]) -> list[BlockRef | None]:
        """Return the blocks with these numbers, requested 25 at once.

        If the upstream's chain changes between two batches, one block may not be the
        parent of the next.
        """
        found: list[Any] = []
        for start in range(0, len(numbers), HEADERS_AT_ONCE):
            part = numbers[start : start + HEADERS_AT_ONCE]
            found += await self.client.batch(
                [("eth_getBlockByNumber", (hex(number), False)) for number in part],
                MAX_HEADERS_BYTES,
            )
        blocks = []
        for number, document in zip(numbers, found, strict=True):
            if isinstance(document, UpstreamError):
                raise document
            blocks.append(_at(number, document))
        return blocks

    async def reference(self, block_hash: bytes) -> BlockRef | None:
        """Return the reference of the block with a hash."""
        header = await self.header(block_hash)
        return None if header is None else _reference(header)

    async def header(self, block_hash: bytes) -> Header | None:
        """Return the header of the block with a hash."""
        document = await self._document(block_hash, with_transactions=False)
        if document is None:
            return None
        header = header_of(document)
        if header.hash != block_hash:
            raise WrongBlock(f"the header's hash is 0x{header.hash.hex()}")
        return header

    async def block(self, block_hash: bytes, number: int | None = None) -> bytes | None:
        """Return the verified RLP of the block with a hash.

        number: the block's number, for upstreams whose `debug_getRawBlock` takes only
            numbers.

        Raises: UnsupportedBlock if the block has the hash, but an unknown format;
            UnknownTransactionType if a transaction has an unknown type and the upstream
            does not return its RLP. An UpstreamError has the code `PRUNED` if the
            upstream has deleted the block.
        """
        mode, failure = self.raw_mode, None
        try:
            raw = await self._raw(mode, block_hash, number)
        except UpstreamError as error:
            failure = error
        except UpstreamUnavailable as error:
            if error.status not in REFUSING_STATUSES:
                raise
            failure = MethodUnavailable(error.status, error.reason)
        else:
            if raw is not None:
                self._failures = 0
                return raw
        document = await self._document(block_hash, with_transactions=True)
        if document is None:
            if failure is not None and failure.code == PRUNED:
                raise failure
            return None
        if failure is not None:
            self._note(mode, failure)
        return await self._rebuilt(document, block_hash)

    async def _raw(
        self, mode: RawMode, block_hash: bytes, number: int | None
    ) -> bytes | None:
        """Return the block from `debug_getRawBlock`, or None if it has to be rebuilt.

        Raises: UpstreamError, also if the call returns null; WrongBlock.
        """
        if mode == RawMode.NEVER or (mode == RawMode.BY_NUMBER and number is None):
            return None
        name = to_hex(block_hash)
        if mode == RawMode.BY_NUMBER:
            assert number is not None
            name = hex(number)
        found = await self.client.call(
            "debug_getRawBlock", name, max_bytes=MAX_BLOCK_BYTES
        )
        if found is None or found == "0x":
            raise UpstreamError(_NOT_FOUND, "block not found")
        try:
            return verified(data(found), block_hash)
        except WrongBlock:
            if mode == RawMode.BY_NUMBER:
                return None  # the number is that of a sibling, too
            raise

    def _note(self, mode: RawMode, failure: UpstreamError) -> None:
        """Change to the next mode if `debug_getRawBlock` does not work in this mode.

        failure: the error for a block that exists.
        """
        if mode != self.raw_mode:
            return
        self._failures += 1
        if isinstance(failure, MethodUnavailable):
            self.raw_mode = RawMode.NEVER
        elif failure.code == _INVALID_PARAMS or self._failures >= _MAX_FAILURES:
            self.raw_mode = RawMode(mode + 1)
            self._failures = 0

    async def _rebuilt(self, document: dict[str, Any], block_hash: bytes) -> bytes:
        header = header_of(document)
        if header.hash != block_hash:
            raise WrongBlock(f"the header's hash is {to_hex(header.hash)}")
        uncles = await self._uncles(block_hash, len(uncle_hashes(document)))
        raw_transactions = await self._raw_transactions(
            block_hash, unknown_types(document)
        )
        return verified(rebuild_block(document, uncles, raw_transactions), block_hash)

    async def _uncles(self, block_hash: bytes, count: int) -> list[dict[str, Any]]:
        calls = [
            ("eth_getUncleByBlockHashAndIndex", (to_hex(block_hash), hex(index)))
            for index in range(count)
        ]
        uncles = []
        for uncle in await self.client.batch(calls):
            if isinstance(uncle, UpstreamError):
                raise uncle
            uncles.append(_object(uncle))
        return uncles

    async def _raw_transactions(
        self, block_hash: bytes, types: dict[int, int]
    ) -> dict[int, bytes]:
        """Return the EIP-2718 encodings of transactions with unknown types, by index.

        types: the types by index.

        Raises: UnknownTransactionType if the upstream does not return one of them.
        """
        calls = [
            (
                "eth_getRawTransactionByBlockHashAndIndex",
                (to_hex(block_hash), hex(index)),
            )
            for index in types
        ]
        found = await self.client.batch(calls, MAX_BLOCK_BYTES)
        raw_transactions = {}
        for (index, kind), raw in zip(types.items(), found, strict=True):
            if raw is None or isinstance(raw, UpstreamError):
                raise UnknownTransactionType(kind)
            raw_transactions[index] = data(raw)
        return raw_transactions

    async def _by_number(self, name: str) -> Any:
        return await self.client.call(
            "eth_getBlockByNumber", name, False, max_bytes=MAX_HEADER_BYTES
        )

    async def _document(
        self, block_hash: bytes, *, with_transactions: bool
    ) -> dict[str, Any] | None:
        document = await self.client.call(
            "eth_getBlockByHash",
            *(to_hex(block_hash), with_transactions),
            max_bytes=MAX_BLOCK_BYTES if with_transactions else MAX_HEADER_BYTES,
        )
        return None if document is None else _object(document)


def _found(document: Any) -> BlockRef | None:
    """Return the reference of a block object, after its hash was verified.

    None for null.
    """
    return None if document is None else _reference(header_of(_object(document)))


def _reference(header: Header) -> BlockRef:
    return BlockRef(
        header.number,
        header.hash,
        header.parent_hash,
        header.timestamp,
        is_of_amsterdam=header.slot_number is not None,
    )


def _at(number: int, document: Any) -> BlockRef | None:
    block = _found(document)
    if block is not None and block.number != number:
        raise WrongBlock(f"it has the number {block.number}, not {number}")
    return block


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise WrongBlock("no block object")
    return value
