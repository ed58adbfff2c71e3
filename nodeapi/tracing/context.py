"""The context of a task in a worker process: the database, the network and the state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nodeapi.tracing import wire
from nodeapi.tracing.states import NoSuchBlock, PastRows

if TYPE_CHECKING:
    import psycopg

    from evm.chain_config import ChainConfig
    from nodeapi.proofs.unknown import PastStates
    from nodeapi.tracing.states import BlockState, StateCache

SERVER_ERROR = -32000
"""JSON-RPC code of geth's errors without a specific code."""


class TaskFailed(Exception):
    """Raised when a task fails because of its arguments. The caller gets this error.

    code, message, data: those of the JSON-RPC error; data None: without `data`.
    gas_used: gas that was executed until then, which is charged.
    """

    is_lasting = True
    """Whether the same task fails again with the same error."""

    def __init__(
        self, code: int, message: str, data: Any = None, gas_used: int = 0
    ) -> None:
        self.code = code
        self.message = message
        self.data = data
        self.gas_used = gas_used
        super().__init__(message)


class TransientFailure(TaskFailed):
    """Raised when a task fails because of the blocks that are stored at the moment.

    Unlike other failures, it is not cached: the block may be imported later, or become
    canonical.
    """

    is_lasting = False


class TaskTimedOut(BaseException):
    """Raised in a task, at any instruction, when its time is over.

    It is not an Exception, because no handler of the task should catch it.
    """


@dataclass(frozen=True, slots=True)
class TaskResult:
    """The result of a task.

    result: JSON. gas_used: gas that was executed, which is charged.
    """

    result: bytes
    gas_used: int = 0


class TaskContext:
    """The surroundings of one task.

    block_hash: the job's block; b"" if it has none.
    connection: in autocommit mode. A task that reads more than the state of one block
        opens a snapshot (`nodeapi.tracing.execution.snapshot`).
    deadline: in the time of `time.monotonic()`. The worker ends the task then.
    write: adds bytes to a long result, which is read from a file. If it was called, the
        task returns b"".
    progress: reports that the task is alive. Its time begins again.
    past: of its `TaskJob`.
    """

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        network_id: int,
        block_hash: bytes,
        deadline: float,
        states: StateCache,
        write: Callable[[bytes], object],
        progress: Callable[[], object],
        past: Any = None,
    ) -> None:
        self.connection = connection
        self.network_id = network_id
        self.block_hash = block_hash
        self.deadline = deadline
        self.write = write
        self.progress = progress
        self._states = states
        self._past: PastStates = {} if past is None else wire.past_from_json(past)

    @property
    def config(self) -> ChainConfig:
        """The network's chain id and forks."""
        return self._states.config(self.connection, self.network_id)

    @property
    def checkpoint(self) -> int | None:
        """Number of the block at which the network started, None for block 0."""
        return self._states.checkpoint(self.connection, self.network_id)

    @property
    def state(self) -> BlockState:
        """The state after the job's block. Raises: TransientFailure."""
        return self.state_after(self.block_hash)

    def state_after(self, block_hash: bytes) -> BlockState:
        """Return the state after a block, whose rows are cached across tasks.

        Raises: TransientFailure if the block is not stored.
        """
        try:
            found = self._states.after(self.connection, self.network_id, block_hash)
        except NoSuchBlock:
            raise TransientFailure(SERVER_ERROR, "header for hash not found") from None
        values = self._past.get(block_hash)
        if values is not None and isinstance(found.state, PastRows):
            found.state.add(values)
        return found


Task = Callable[[TaskContext, Any], TaskResult | bytes]
"""Takes the context and the job's arguments; returns JSON."""
