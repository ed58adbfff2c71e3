"""Limits of the pool of worker processes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from nodeapi.results.spool import SpoolCount


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolLimits:
    """Limits of the executions of a serving process."""

    workers: int = 2
    """Worker processes."""
    waiting: int = 64
    """Jobs that may wait for a worker; further ones are rejected."""
    per_key: int = 2
    """Requests of one key whose traces, or tasks of more than SHORT_SECONDS, are queued,
    executed or being read."""
    waiting_tasks: int = 4096
    """Different tasks that may be queued or executed; further ones are rejected. Large
    ones count several times, see `nodeapi.tracing.answers.weight_of`."""
    tasks_per_key: int = 256
    """Short tasks of one key that may be queued or executed, counted in the same way."""
    seconds: float = 60.0
    """Time limit of a job, whatever the timeout of a transaction."""
    memory_bytes: int = 2**30
    """Memory of each process, beyond what it takes when idle."""
    result_bytes: int = 2**29
    """Size limit of one result."""
    spool_bytes: int = 2**32
    """Size limit of all unread results in files, of jobs and of records."""
    owner_bytes: int | None = None
    """Size limit of one owner's unread results. If None, a quarter of `spool_bytes`."""
    spool_folder: Path | None = None
    """The folder of the files. If None, the system's temporary folder."""

    def spool_count(self) -> SpoolCount:
        """Return a counter with the limits of the spool."""
        share = self.spool_bytes // 4 if self.owner_bytes is None else self.owner_bytes
        return SpoolCount(self.spool_bytes, share)
