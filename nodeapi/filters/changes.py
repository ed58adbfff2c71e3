"""The logs of blocks that were added and removed since the last poll of a filter."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Hashable
from contextlib import aclosing

from nodeapi.log_filter import LogFilter
from nodeapi.ports import Answer, BlockChanges, BlockId, Store

SINGLE_BLOCKS = 16
"""Number of added blocks up to which the logs are read block by block. They are cached for
all filters then. The log index has the logs of more blocks."""

_REMOVED = b'"removed":true}'
_NOT_REMOVED = b'"removed":false}'


class ChainMoved(Exception):
    """Raised if the chain has changed again while its logs were read."""


async def changed_logs(
    store: Store,
    network_id: int,
    changes: BlockChanges,
    wanted: LogFilter,
    is_selected: Callable[[int], bool],
    owner: Hashable,
) -> AsyncGenerator[bytes, None]:
    """Yield the logs of removed blocks, then those of added ones, separated by commas.

    Both are in ascending order. Logs of removed blocks have `"removed":true`.

    is_selected: whether the filter selects blocks with a number.
    owner: the account that long results count for.

    Raises: ChainMoved; the errors of `Store.logs_between`.
    """
    removed = [block for block in changes.removed if is_selected(block[0])]
    added = [block for block in changes.added if is_selected(block[0])]
    for block in removed:
        logs = await _logs_of_block(store, network_id, block, wanted, owner)
        yield logs.replace(_NOT_REMOVED, _REMOVED)
    if len(added) <= SINGLE_BLOCKS:
        for block in added:
            yield await _logs_of_block(store, network_id, block, wanted, owner)
        return
    logs = await _members(
        await store.logs_between(
            network_id, added[0][0], added[-1][0], wanted, owner=owner
        )
    )
    since = await store.changes_since(network_id, changes.newest[1], 1)
    if since is None or since.removed:
        raise ChainMoved
    yield logs


async def _logs_of_block(
    store: Store, network_id: int, block: BlockId, wanted: LogFilter, owner: Hashable
) -> bytes:
    found = await store.logs_of_block(network_id, block[1], wanted, owner=owner)
    if found is None:
        raise ChainMoved
    return await _members(found)


async def _members(logs: Answer) -> bytes:
    """Return the elements of an array without its brackets."""
    if isinstance(logs, bytes):
        return logs[1:-1]
    async with aclosing(logs):
        return (await logs.read())[1:-1]
