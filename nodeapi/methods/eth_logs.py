"""`eth_getLogs`: logs of blocks, by address and topics.

Source: go-ethereum eth/filters/api.go, GetLogs; eth/filters/filter.go, Logs
"""

from __future__ import annotations

from jsonrpc.errors import InvalidParams
from jsonrpc.later import Later
from jsonrpc.params import Param
from nodeapi.errors.blocks import UnknownBlock
from nodeapi.methods.catalog import registry
from nodeapi.methods.context import Context
from nodeapi.methods.log_criteria import LogCriteria, log_criteria
from nodeapi.results.answers import Answer
from nodeapi.schemas.building import named
from nodeapi.schemas.logs import LOG_CRITERIA, LOGS

CRITERIA = Param(
    "filter",
    log_criteria,
    LOG_CRITERIA,
    summary="The blocks (latest by default), addresses and topics to search for.",
)

NO_LOGS = b"[]"


@registry.method(
    "eth_getLogs",
    params=[CRITERIA],
    result=named("logs", LOGS),
    summary="Returns the logs of a block, or of a range of blocks, that match a filter.",
    credits=10,
)
def get_logs(context: Context, criteria: LogCriteria) -> Later[Answer]:
    """Return the matching logs of a block, canonical or not, or of canonical blocks."""
    require_filter(context, criteria)
    begin, end = criteria.from_block, criteria.to_block
    # geth compares numbers other than 0 before it looks at tags.
    if isinstance(begin, int) and isinstance(end, int) and 0 < end < begin:
        raise InvalidParams("invalid block range params")
    return find_logs(context, criteria)


def require_filter(context: Context, criteria: LogCriteria) -> None:
    """Check a filter's size, and its addresses with the key's allowlist.

    Raises: TooManyAlternatives, ContractNotAllowed.
    """
    criteria.require_few_alternatives()
    allowlists = context.grant.allowlists
    if allowlists is not None:
        allowlists.require_filter(criteria.wanted.address_bytes())


def find_logs(context: Context, criteria: LogCriteria) -> Later[Answer]:
    """Return the logs that match criteria.

    Fails with UnknownBlock, InvalidParams, TaggedHeaderNotFound, or an error of
    `Store.logs_between`.
    """
    if criteria.block_hash is not None:
        return _logs_of_block(context, criteria.block_hash, criteria)
    return Later.from_coroutine(_logs_in_range(context, criteria))


def _logs_of_block(
    context: Context, block_hash: bytes, criteria: LogCriteria
) -> Later[Answer]:
    found = context.store.logs_of_block(
        context.network.id, block_hash, criteria.wanted, owner=context.customer
    )
    return found.then(_existing)


def _existing(logs: Answer | None) -> Answer:
    if logs is None:
        raise UnknownBlock
    return logs


async def _logs_in_range(context: Context, criteria: LogCriteria) -> Answer:
    store, network_id = context.store, context.network.id
    begin = "latest" if criteria.from_block is None else criteria.from_block
    end = "latest" if criteria.to_block is None else criteria.to_block
    if "pending" in (begin, end):
        raise InvalidParams("pending logs are not supported")
    first, last = await store.log_range(network_id, begin, end)
    if first == last:
        block_hash = await store.canonical_hash(network_id, first)
        if block_hash is None:
            return NO_LOGS  # the head has moved back in the meantime
        return await _logs_of_block(context, block_hash, criteria)
    return await store.logs_between(
        network_id, first, last, criteria.wanted, owner=context.customer
    )
