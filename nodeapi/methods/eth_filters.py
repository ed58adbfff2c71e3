"""Filters that clients poll: new logs, blocks and pending transactions.

Source: go-ethereum eth/filters/api.go
"""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

from django.conf import settings

from jsonrpc.errors import ServiceUnavailable
from jsonrpc.params import Param
from jsonrpc.text import dump
from nodeapi.encoding import boolean, rpc_id
from nodeapi.filters.filters import Filters
from nodeapi.logs.filter import LogSelection
from nodeapi.methods.catalog import registry
from nodeapi.methods.context import Context
from nodeapi.methods.eth_logs import CRITERIA, find_logs, require_filter
from nodeapi.methods.log_criteria import LogCriteria, log_criteria
from nodeapi.results.answers import Answer
from nodeapi.schemas.building import named
from nodeapi.schemas.logs import FILTER_CHANGES, LOGS
from nodeapi.schemas.values import BOOLEAN, QUANTITY

_ID = Param("filterId", rpc_id, QUANTITY)
_RESULT = named("filterId", QUANTITY)


@registry.method(
    "eth_newFilter",
    params=[CRITERIA],
    result=_RESULT,
    summary="Creates a filter for new logs, and returns its id.",
)
async def new_filter(context: Context, criteria: LogCriteria) -> bytes:
    """Create a filter of the logs of blocks that are imported from now on."""
    require_filter(context, criteria)
    criteria.new_logs()  # rejects criteria without new blocks
    filters = _filters(context)
    name = await filters.add_logs(context.network, context.payer, criteria.encode())
    return dump(name)


@registry.method(
    "eth_newBlockFilter",
    result=_RESULT,
    summary="Creates a filter for the hashes of new blocks, and returns its id.",
)
async def new_block_filter(context: Context) -> bytes:
    """Create a filter of the blocks that become canonical from now on."""
    return dump(await _filters(context).add_blocks(context.network, context.payer))


@registry.method(
    "eth_newPendingTransactionFilter",
    params=[
        Param(
            "fullTransactions",
            boolean,
            BOOLEAN,
            required=False,
            default=False,
            summary="true: transactions as objects; false: their hashes.",
        )
    ],
    result=_RESULT,
    summary="Creates a filter for new pending transactions, and returns its id.",
)
async def new_pending_transaction_filter(context: Context, full: bool) -> bytes:
    """Create a filter of transactions that reach an upstream, or the local pool."""
    filters = _filters(context)
    name = await filters.add_pending(context.network, context.payer, is_full=full)
    return dump(name)


@registry.method(
    "eth_getFilterChanges",
    params=[_ID],
    result=named("changes", FILTER_CHANGES),
    summary="Returns the logs, blocks or transactions since the last call with this "
    "filter.",
    credits=5,
    takes_room=True,
)
async def get_filter_changes(
    context: Context, name: str, room: int | None = None
) -> Answer:
    """Return new logs, hashes or transactions, and logs that were removed since.

    room: bytes that the result may have. Events that do not fit are left to later calls.
        None outside of batches: as many as a socket sends, and over HTTP any number.

    Fails with FilterNotFound, ContractNotAllowed, LogSearchTimedOut or ResultTooLarge.
    """
    if room is None:
        is_http = context.notifier is None
        room = sys.maxsize if is_http else settings.NODEAPI_MAX_BATCH_RESPONSE_BYTES
    return await _filters(context).poll(
        *(context.network, context.payer, name),
        *(partial(_selection, context), context.customer, room),
    )


@registry.method(
    "eth_getFilterLogs",
    params=[_ID],
    result=named("logs", LOGS),
    summary="Returns all logs that a filter selects, like eth_getLogs.",
    credits=10,
)
async def get_filter_logs(context: Context, name: str) -> Answer:
    """Return the logs that match a filter's criteria, the stored ones included.

    Fails with FilterNotFound, also for a filter of blocks or transactions;
    ContractNotAllowed; or an error of `find_logs`.
    """
    filters = _filters(context)
    found = await filters.criteria(context.network, context.payer, name)
    criteria = log_criteria(found)
    require_filter(context, criteria)
    return await find_logs(context, criteria)


@registry.method(
    "eth_uninstallFilter",
    params=[_ID],
    result=named("removed", BOOLEAN),
    summary="Removes a filter. Returns false if there is none with this id.",
)
async def uninstall_filter(context: Context, name: str) -> bytes:
    """Remove a filter."""
    filters = _filters(context)
    is_removed = await filters.remove(context.network, context.payer, name)
    return b"true" if is_removed else b"false"


def _filters(context: Context) -> Filters:
    if context.filters is None:
        raise ServiceUnavailable
    return context.filters


def _selection(context: Context, criteria: dict[str, Any]) -> LogSelection:
    """Return the selection of new logs that a filter reports.

    The key's allowlist may have become stricter since the filter was created.

    Raises: ContractNotAllowed.
    """
    decoded = log_criteria(criteria)
    require_filter(context, decoded)
    return decoded.new_logs()
