"""Execution of tasks that may need trie nodes which a sparse network does not have."""

from __future__ import annotations

from typing import Any

from evm.proof_nodes import ProofNodes
from evm.proved_state import Keys
from jsonrpc.errors import ServiceUnavailable
from nodeapi.errors.blocks import NotProved
from nodeapi.methods.context import Context
from nodeapi.methods.execution import run_task
from nodeapi.proofs.unknown import UnknownNodes
from nodeapi.results.answers import Answer


async def run_with_nodes(
    context: Context,
    task: str,
    block_hash: bytes,
    arguments: dict[str, Any],
    *,
    is_on_parent: bool = False,
    **options: Any,
) -> Answer:
    """Return the result of a task, executed again with trie nodes that upstreams send.

    is_on_parent: whether the nodes are of the state before the block.
    options: of `run_task`.

    Fails as `run_task`, and with NotProved if no upstream sends a node.
    """
    proved, nodes = Keys(), ProofNodes()
    while True:
        try:
            return await run_task(context, task, block_hash, arguments, **options)
        except UnknownNodes as error:
            wanted = Keys(
                error.keys.accounts - proved.accounts, error.keys.slots - proved.slots
            )
        if not wanted:
            raise NotProved  # the node is on none of the keys' paths
        if context.values is None:
            raise ServiceUnavailable
        state_hash = block_hash
        if is_on_parent:
            header = await context.store.header(context.network.id, block_hash)
            assert header is not None
            state_hash = header.parent_hash
        async with context.allowance.fetch(len(wanted)):
            anchor, found = await context.values.nodes_at(
                context.network, state_hash, wanted, context.customer
            )
        proved.update(wanted)
        nodes.update(found)
        rows = nodes.rows(anchor.state_root)
        digits = [node.hex() for row in rows.values() for node in row.values()]
        arguments = {**arguments, "nodes": digits}
