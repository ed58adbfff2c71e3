"""Cached outcomes of tasks, such as the return data of a call after a block."""

from __future__ import annotations

from nodeapi.ports.tasks import TaskName
from nodeapi.store.base import Reads


class TaskOutcomes(Reads):
    """Caches the outcomes of tasks, in the cache of all reads.

    A task's name contains the hash of its block, so that its outcome never changes.
    """

    def task_outcome(self, network_id: int, name: TaskName) -> bytes | None:
        """Return the cached outcome of a task, or None."""
        return self._cache.get(("task", network_id, name))

    def keep_task_outcome(
        self, network_id: int, name: TaskName, outcome: bytes
    ) -> None:
        """Cache the outcome of a task."""
        self._cache.put(("task", network_id, name), outcome)
