"""`trace_filter`: a search for flat traces by their senders and recipients.

Sources: https://openethereum.github.io/JSONRPC-trace-module; erigon
rpc/jsonrpc/trace_filtering.go; reth crates/rpc/rpc/src/trace.rs
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.conf import settings

from evm.tracers.native import FLAT_CALL, NativeTracer
from jsonrpc.errors import InvalidParams
from jsonrpc.params import Param
from jsonrpc.text import kind
from nodeapi.encoding import address
from nodeapi.errors.blocks import HistoryPruned
from nodeapi.go.decoding import Field, mismatch, struct
from nodeapi.methods import traces
from nodeapi.methods.block_numbers import block_number_of
from nodeapi.methods.catalog import registry
from nodeapi.methods.context import TRACE, Context
from nodeapi.methods.execution import run_task
from nodeapi.methods.numbers import number, number_or_tag
from nodeapi.methods.trace_options import TraceOptions
from nodeapi.results.answers import Answer
from nodeapi.schemas.building import named
from nodeapi.schemas.parity import FLAT_TRACES, TRACE_FILTER
from nodeapi.tracing.trace_filter import TraceFilter

MAX_ADDRESSES = 1000
"""Maximum number of addresses of a filter, `fromAddress` and `toAddress` together."""

MAX_BLOCKS = 100
"""Maximum number of blocks that a filter without addresses includes; reth's limit."""

_OPTIONS = TraceOptions(NativeTracer(FLAT_CALL, frozenset({"convertParityErrors"})))

_FIELDS = {
    name: Field(f"TraceFilter.{name}")
    for name in (
        *("fromBlock", "toBlock", "fromAddress", "toAddress"),
        *("mode", "after", "count"),
    )
}
_NEEDS_BOTH = {"union": False, "intersection": True}


@dataclass(frozen=True, slots=True)
class _Query:
    """A decoded filter, whose first and last block may be tags."""

    first: int | str
    last: int | str
    senders: frozenset[bytes]
    recipients: frozenset[bytes]
    needs_both: bool
    after: int
    count: int | None


def _query(value: Any) -> _Query:
    """Decode a filter object."""
    members = struct(value, "TraceFilter", _FIELDS)
    mode = members.get("mode", "union")
    if type(mode) is not str or mode not in _NEEDS_BOTH:
        raise ValueError('mode must be "union" or "intersection"')
    return _Query(
        number_or_tag(members.get("fromBlock", 0)),
        number_or_tag(members.get("toBlock", "latest")),
        _addresses(members.get("fromAddress", [])),
        _addresses(members.get("toAddress", [])),
        _NEEDS_BOTH[mode],
        number(members.get("after", 0)),
        number(members["count"]) if "count" in members else None,
    )


def _addresses(value: Any) -> frozenset[bytes]:
    if type(value) is not list:
        raise ValueError(mismatch(kind(value), "[]common.Address"))
    return frozenset(map(address, value))


@registry.method(
    "trace_filter",
    params=[Param("traceFilter", _query, TRACE_FILTER)],
    result=named("traces", FLAT_TRACES),
    summary="Returns the calls and rewards in a range of blocks that have certain senders "
    "or recipients.",
    credits=20,
    capability=TRACE,
    is_slow=True,
)
async def trace_filter(context: Context, query: _Query) -> Answer:
    """Return the matching flat traces of the canonical chain, in order.

    Blocks above the head are ignored. The addresses have to be in the key's allowlist of
    contracts, if there is one.

    Raises: ContractNotAllowed, InvalidParams, HistoryPruned, TraceTooLarge, and the errors
    of `run_task`.
    """
    traces.require_tracers(context, _OPTIONS)
    allowlists = context.grant.allowlists
    if allowlists is not None:
        allowlists.require_contracts(query.senders | query.recipients)
    store, network_id = context.store, context.network.id
    head = await store.head_number(network_id)
    first = await block_number_of(context, query.first)
    last = await block_number_of(context, query.last)
    if first > last:
        raise InvalidParams(
            "invalid parameters: fromBlock cannot be greater than toBlock"
        )
    last = min(last, head)
    if first > last:
        return b"[]"
    if len(query.senders) + len(query.recipients) > MAX_ADDRESSES:
        raise InvalidParams(f"too many addresses (max {MAX_ADDRESSES})")
    is_selective = query.senders or query.recipients
    if not is_selective and last - first >= MAX_BLOCKS:
        raise InvalidParams(
            f"Block range too large; currently limited to {MAX_BLOCKS} blocks"
        )
    checkpoint = context.network.checkpoint_number
    if checkpoint is not None and first <= checkpoint:
        raise HistoryPruned(checkpoint + 1)
    block_hash = await store.canonical_hash(network_id, last)
    if block_hash is None:
        return b"[]"
    wanted = TraceFilter(
        first=first,
        last=last,
        senders=query.senders,
        recipients=query.recipients,
        needs_both=query.needs_both,
        after=query.after,
        count=query.count,
    )
    return await run_task(
        context,
        "trace_filter",
        block_hash,
        wanted.as_json(),
        timeout=settings.NODEAPI_TRACE_TIMEOUT,
    )
