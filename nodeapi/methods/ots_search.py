"""`ots_searchTransactions…`: the transactions in which an account appears, by page.

Source: erigon rpc/jsonrpc/otterscan_search_v3.go
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from jsonrpc.errors import RpcError
from jsonrpc.later import all_of
from jsonrpc.params import Param
from jsonrpc.stream import Stream
from nodeapi.encoding import address
from nodeapi.methods.catalog import registry
from nodeapi.methods.context import Context
from nodeapi.methods.numbers import number
from nodeapi.results.answers import Answer
from nodeapi.schemas.building import named
from nodeapi.schemas.otterscan import SEARCH_PAGE
from nodeapi.schemas.values import ADDRESS, NUMBER
from nodeapi.store.appearances import BlockAppearances
from postgres.errors import Unavailable

MAX_PAGE_SIZE = 25

_PARAMS = [
    Param("address", address, ADDRESS),
    Param("blockNumber", number, NUMBER),
    Param("pageSize", number, NUMBER),
]
_TIME = re.compile(rb'"blockTimestamp":"0x([0-9a-f]+)"')
_HASH = re.compile(rb'"hash":"0x([0-9a-f]{64})"')


class PageTooLarge(RpcError):
    """Raised when a page of a search by account has too many transactions."""

    form = "max allowed page size: <limit>"
    remedy = "Request a smaller page."

    def __init__(self) -> None:
        super().__init__(f"max allowed page size: {MAX_PAGE_SIZE}")


@registry.method(
    "ots_searchTransactionsBefore",
    params=_PARAMS,
    result=named("page", SEARCH_PAGE),
    summary="Returns the newest transactions below a block in which an address appears, "
    "with their receipts. Block 0 means all blocks.",
    credits=20,
)
async def search_transactions_before(
    context: Context, account: bytes, before: int, size: int
) -> bytes:
    """Return a page, the newest transaction first.

    A page has all of a block's transactions or none, so that it may be longer.
    Raises: PageTooLarge, HistoryPruned.
    """
    _check_size(size)
    store, network_id = context.store, context.network.id
    until = before or await store.head_number(network_id) + 1
    found = await store.appearances_before(network_id, account, until, size + 1)
    page, has_more = _page(found, size)
    places = [(block, index) for block in page for index in reversed(block.indexes)]
    # Of the blocks up to a checkpoint it is not known whether the address appears there.
    is_last = not has_more and context.network.checkpoint_number is None
    return await _transactions(context, places, is_first=before == 0, is_last=is_last)


@registry.method(
    "ots_searchTransactionsAfter",
    params=_PARAMS,
    result=named("page", SEARCH_PAGE),
    summary="Returns the oldest transactions above a block in which an address appears, "
    "with their receipts, the newest of them first.",
    credits=20,
)
async def search_transactions_after(
    context: Context, account: bytes, after: int, size: int
) -> bytes:
    """Return a page; see `search_transactions_before`."""
    _check_size(size)
    store, network_id = context.store, context.network.id
    found = await store.appearances_after(network_id, account, after, size + 1)
    page, has_more = _page(found, size)
    places = [
        (block, index) for block in reversed(page) for index in reversed(block.indexes)
    ]
    return await _transactions(
        context, places, is_first=not has_more, is_last=after == 0
    )


def _check_size(size: int) -> None:
    if size > MAX_PAGE_SIZE:
        raise PageTooLarge


def _page(
    found: Sequence[BlockAppearances], size: int
) -> tuple[list[BlockAppearances], bool]:
    """Return the blocks of a page, and whether there are further ones."""
    page: list[BlockAppearances] = []
    count = 0
    for block in found:
        if count >= size:
            return page, True
        page.append(block)
        count += len(block.indexes)
    return page, False


async def _transactions(
    context: Context,
    places: Sequence[tuple[BlockAppearances, int]],
    *,
    is_first: bool,
    is_last: bool,
) -> bytes:
    """Return transactions and receipts as JSON."""
    store, network_id = context.store, context.network.id
    documents = await all_of(
        [
            store.transaction_by_block_hash_and_index(
                network_id, block.block_hash, index
            )
            for block, index in places
        ]
    )
    transactions = [document for document in documents if document is not None]
    found = await all_of(
        [store.receipt(network_id, _hash(document)) for document in transactions]
    )
    receipts = [
        await _timed(receipt, document)
        for receipt, document in zip(found, transactions, strict=True)
    ]
    return b'{"txs":[%b],"receipts":[%b],"firstPage":%b,"lastPage":%b}' % (
        b",".join(transactions),
        b",".join(receipts),
        b"true" if is_first else b"false",
        b"true" if is_last else b"false",
    )


def _hash(transaction: bytes) -> bytes:
    """Return the hash in a transaction object."""
    found = _HASH.search(transaction)
    assert found is not None, "every transaction object has a hash"
    return bytes.fromhex(found[1].decode())


async def _timed(receipt: Answer | None, transaction: bytes) -> bytes:
    """Return a receipt object with the time of its block.

    transaction: the transaction object, which has that time.
    """
    if receipt is None:
        raise Unavailable("the block was removed by a reorganisation")
    if isinstance(receipt, Stream):
        receipt = await receipt.read()
    time = _TIME.search(transaction)
    assert time is not None, "every stored transaction object has a time"
    return b'%b,"timestamp":%d}' % (receipt.removesuffix(b"}"), int(time[1], 16))
