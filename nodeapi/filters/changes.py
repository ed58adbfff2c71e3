"""The logs of blocks that were added and removed since the last poll of a filter."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Hashable, Sequence
from contextlib import aclosing

from nodeapi.errors.logs import TooManyLogs
from nodeapi.logs.filter import LogFilter
from nodeapi.results.answers import Answer
from nodeapi.store import Store
from nodeapi.store.changes import BlockChanges, BlockId

SINGLE_BLOCKS = 16
"""Number of added blocks up to which the logs are read block by block. They are cached for
all filters then. The logs of more blocks are read through the log index."""

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
) -> AsyncGenerator[tuple[Answer, BlockId | None], None]:
    """Yield the logs of removed blocks, then those of added ones, in ascending order.

    Logs of removed blocks have `"removed":true`.

    is_selected: whether the filter selects blocks with a number.
    owner: the account that long results count for.

    Yields: an array of logs, and the block at which the filter can continue after it.
        None: the filter can't continue there, because logs of further removed blocks
        follow.
    Raises: ChainMoved; LogSearchTimedOut.
    """
    removed = [block for block in changes.removed if is_selected(block[0])]
    left = [block for block in changes.added if is_selected(block[0])]
    for block in removed:
        logs = await _logs_of_block(store, network_id, block, wanted, owner)
        yield (
            (await _in_memory(logs)).replace(_NOT_REMOVED, _REMOVED),
            changes.fork if block == removed[-1] else None,
        )
    while len(left) > SINGLE_BLOCKS:
        count, logs = await _logs_of_first(store, network_id, left, wanted, owner)
        yield logs, left[count - 1]
        left = left[count:]
    for block in left:
        yield await _logs_of_block(store, network_id, block, wanted, owner), block


async def _logs_of_first(
    store: Store,
    network_id: int,
    blocks: Sequence[BlockId],
    wanted: LogFilter,
    owner: Hashable,
) -> tuple[int, Answer]:
    """Return the logs of the first of some blocks, as many as one search may return.

    blocks: canonical blocks with consecutive numbers.

    Returns: the number of these blocks, at least one, and their logs as an array.
    Raises: ChainMoved.
    """
    first = blocks[0][0]
    count = len(blocks)
    while count > 1:
        last, last_hash = blocks[count - 1]
        try:
            logs = await store.logs_between(
                network_id, first, last, wanted, owner=owner
            )
        except TooManyLogs as error:
            count = error.last - first + 1
            continue
        since = await store.changes_since(network_id, last_hash, 1)
        if since is None or since.removed:
            raise ChainMoved
        return count, logs
    return 1, await _logs_of_block(store, network_id, blocks[0], wanted, owner)


async def _logs_of_block(
    store: Store, network_id: int, block: BlockId, wanted: LogFilter, owner: Hashable
) -> Answer:
    found = await store.logs_of_block(network_id, block[1], wanted, owner=owner)
    if found is None:
        raise ChainMoved
    return found


async def _in_memory(logs: Answer) -> bytes:
    """Return a block's logs as bytes."""
    if isinstance(logs, bytes):
        return logs
    async with aclosing(logs):
        return await logs.read()
