"""The node's methods, one or more modules for each namespace.

Each method has the same order: decode, authorise, load, compute, encode.
"""

from __future__ import annotations

from django.conf import settings

from nodeapi.methods import (
    block_lists,
    debug,
    debug_calls,
    debug_states,
    erigon,
    eth,
    eth_calls,
    eth_fees,
    eth_filling,
    eth_filters,
    eth_headers,
    eth_logs,
    eth_network,
    eth_proofs,
    eth_sending,
    eth_simulate,
    eth_state,
    eth_subscriptions,
    eth_transactions,
    fork_comparison,
    ots,
    ots_blocks,
    ots_search,
    software,
    trace,
    trace_calls,
    trace_filter,
    trace_get,
    trace_replay,
    txpool,
)
from nodeapi.methods.catalog import registry

if settings.NODEAPI_TESTING_METHODS:
    from nodeapi.methods import testing as testing

__all__ = [
    "block_lists",
    "debug",
    "debug_calls",
    "debug_states",
    "erigon",
    "eth",
    "eth_calls",
    "eth_fees",
    "eth_filling",
    "eth_filters",
    "eth_headers",
    "eth_logs",
    "eth_network",
    "eth_proofs",
    "eth_sending",
    "eth_simulate",
    "eth_state",
    "eth_subscriptions",
    "eth_transactions",
    "fork_comparison",
    "ots",
    "ots_blocks",
    "ots_search",
    "registry",
    "software",
    "trace",
    "trace_calls",
    "trace_filter",
    "trace_get",
    "trace_replay",
    "txpool",
]
