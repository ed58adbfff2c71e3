"""Block access lists: what the execution of a block read and changed (EIP-7928).

Source: https://github.com/ethereum/execution-apis/pull/726
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from django.conf import settings

from evm.headers import Header
from jsonrpc.later import Later, if_found
from jsonrpc.params import Param
from nodeapi.encoding import BlockReference, block_number_or_hash
from nodeapi.errors.blocks import NoAccessList
from nodeapi.methods import traces
from nodeapi.methods.catalog import registry
from nodeapi.methods.context import Context
from nodeapi.methods.execution import run_task
from nodeapi.results.answers import Answer, MaybeAnswer
from nodeapi.schemas.access_lists import DESCRIBED_OR_NULL, LIST_OR_NULL
from nodeapi.schemas.building import named, or_null
from nodeapi.schemas.values import BLOCK_PARAMETER, DATA

_BLOCK = Param("block", block_number_or_hash, BLOCK_PARAMETER)
_BEFORE = (
    "Blocks before Amsterdam have no list: error 4445, no_access_list. "
    "portcullis_getBlockAccessList returns one for them. "
)
_PRICE = (
    "If the list is not stored, the block is executed, and the price rises by 1 credit for "
    "each further 500,000 gas, and for each millisecond of processor time beyond 100."
)


@registry.method(
    "eth_getBlockAccessList",
    params=[_BLOCK],
    result=named("accounts", LIST_OR_NULL),
    summary="Returns the accounts and slots that a block read or changed, with the values "
    "after each transaction, null when there is no such block. " + _BEFORE + _PRICE,
    credits=10,
    is_slow=True,
)
def get_block_access_list(context: Context, block: BlockReference) -> MaybeAnswer:
    """Return the list of a block, canonical or not. Fails with NoAccessList."""
    return _listed(context, block, "accounts")


@registry.method(
    "debug_getRawBlockAccessList",
    params=[_BLOCK],
    result=named("list", or_null(DATA)),
    summary="Returns the RLP of a block's access list, whose hash is in the header, null "
    "when there is no such block. " + _BEFORE + _PRICE,
    credits=10,
    is_slow=True,
)
def get_raw_block_access_list(context: Context, block: BlockReference) -> MaybeAnswer:
    """Return the list of a block, canonical or not. Fails with NoAccessList."""
    return _listed(context, block, "raw")


@registry.method(
    "portcullis_getBlockAccessList",
    params=[_BLOCK],
    result=named("accessList", DESCRIBED_OR_NULL),
    summary="Returns the access list of any block and its hash, null when there is no such "
    "block. computed is true before Amsterdam, where no header confirms the hash. "
    + _PRICE,
    credits=10,
    is_slow=True,
)
def describe_block_access_list(context: Context, block: BlockReference) -> MaybeAnswer:
    """Return the list of a block, canonical or not."""
    return _found(context, block, partial(_run, context, "described"))


def _listed(context: Context, block: BlockReference, form: str) -> MaybeAnswer:
    """Return the list of a block from Amsterdam on. Fails with NoAccessList."""

    def run(header: Header) -> Later[Answer]:
        if header.block_access_list_hash is None:
            raise NoAccessList(header.number)
        return _run(context, form, header)

    return _found(context, block, run)


def _found(
    context: Context, block: BlockReference, run: Callable[[Header], Later[Answer]]
) -> MaybeAnswer:
    """Return the answer for a block's header, nothing for an unknown block."""
    store, network_id = context.store, context.network.id
    found = if_found(
        traces.named_block(context, block),
        lambda block_hash: store.header(network_id, block_hash),
    )
    return if_found(found, run)


def _run(context: Context, form: str, header: Header) -> Later[Answer]:
    if header.block_access_list_hash is None:
        return _compute(context, {"form": form}, header)
    untraced = context.store.is_untraced(context.network, header.hash, is_recorded=True)
    return untraced.then(
        lambda is_untraced: (
            Later.from_coroutine(_of_upstream(context, form, header))
            if is_untraced
            else _compute(context, {"form": form}, header)
        )
    )


async def _of_upstream(context: Context, form: str, header: Header) -> Answer:
    """Return the list of a block that was only proved, as an upstream sends it.

    The header has its hash. Without an upstream that sends it, the block is executed.
    """
    arguments = {"form": form}
    if context.values is not None:
        found = await context.values.past.access_list(context.network, header)
        if found is not None:
            arguments["list"] = found.hex()
    return await _compute(context, arguments, header)


def _compute(
    context: Context, arguments: dict[str, str], header: Header
) -> Later[Answer]:
    return run_task(
        context,
        "block_access_list",
        header.hash,
        arguments,
        timeout=settings.NODEAPI_TRACE_TIMEOUT,
    )
