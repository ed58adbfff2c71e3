"""`debug_executionWitness`: the data with which a block can be executed statelessly.

Source: go-ethereum eth/api_debug.go, ExecutionWitness
"""

from __future__ import annotations

from jsonrpc.later import Later
from jsonrpc.params import Param
from nodeapi.encoding import BlockReference, block_number_or_hash
from nodeapi.errors.traces import BlockNotFound
from nodeapi.methods import traces
from nodeapi.methods.catalog import registry
from nodeapi.methods.context import TRACE, Context
from nodeapi.methods.execution import run_task
from nodeapi.results.answers import Answer
from nodeapi.schemas.building import named
from nodeapi.schemas.proofs import WITNESS
from nodeapi.schemas.values import BLOCK_PARAMETER

TIMEOUT_SECONDS = 60.0
"""Time for the computation of the parent's tries and for the execution."""


@registry.method(
    "debug_executionWitness",
    params=[Param("block", block_number_or_hash, BLOCK_PARAMETER)],
    result=named("witness", WITNESS),
    summary="Returns the headers, contract code and trie nodes that the execution of a "
    "block reads.",
    credits=20,
    capability=TRACE,
    is_slow=True,
)
def get_execution_witness(context: Context, block: BlockReference) -> Later[Answer]:
    """Return the witness of a block, canonical or not."""

    def compute(block_hash: bytes | None) -> Later[Answer]:
        if block_hash is None:
            raise BlockNotFound(block.hash or block.tag or block.number or 0)
        return run_task(context, "witness", block_hash, {}, timeout=TIMEOUT_SECONDS)

    return traces.named_block(context, block).then(compute)
