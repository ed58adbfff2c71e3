"""Values that depend on a network's head, computed once for each head."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Generic, TypeVar

from jsonrpc.later import Later
from networks.directory import Directory, NetworkView
from postgres.errors import Unavailable

T = TypeVar("T")


class HeadValues(Generic[T]):
    """One value for each network, valid for its current head.

    compute: returns the value for a network, whose head is that of the view.
    """

    def __init__(
        self,
        directory: Directory,
        compute: Callable[[NetworkView], Coroutine[Any, Any, T]],
    ) -> None:
        self._directory = directory
        self._compute = compute
        self._values: dict[int, tuple[bytes, T]] = {}
        """Network id → hash of the head, and the value."""
        self._computing: dict[tuple[int, bytes], asyncio.Task[T]] = {}

    def get(self, network_id: int) -> Later[T]:
        """Return the value for the current head. Concurrent callers share a computation.

        Fails with Unavailable if the network has no blocks, and with the errors of
        `compute`.
        """
        return self._directory.current(network_id).then(self._for)

    def _for(self, view: NetworkView) -> Later[T]:
        head_hash = view.head_hash
        if head_hash is None:
            raise Unavailable("the network has no blocks yet")
        known = self._values.get(view.id)
        if known is not None and known[0] == head_hash:
            return Later(known[1])
        key = (view.id, head_hash)
        task = self._computing.get(key)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._compute(view))
            self._computing[key] = task
            task.add_done_callback(partial(self._computed, key))
        # A caller that disconnects does not end the computation for the others.
        return Later.from_future(asyncio.shield(task))

    def _computed(self, key: tuple[int, bytes], task: asyncio.Task[T]) -> None:
        del self._computing[key]
        if not task.cancelled() and task.exception() is None:
            network_id, head_hash = key
            self._values[network_id] = head_hash, task.result()
