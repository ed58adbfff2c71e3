"""Methods on networks with a sparse state: unknown values are proved, then read again.

A method that meets unknown values fails with `UnknownValues`, wherever it reads them: in
the store or in a worker process. It is started again when they are stored. So no method
has to know that a state may be sparse, and none can take an unknown value for zero.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from evm.proved_state import Keys, UnknownValues
from evm.simulation.arguments import ZERO_ADDRESS
from jsonrpc.errors import ServiceUnavailable
from jsonrpc.later import Later
from jsonrpc.registry import Method, MethodRegistry
from nodeapi.errors.blocks import NotProved
from nodeapi.errors.proofs import TooManyRounds
from nodeapi.methods.context import Context
from nodeapi.proofs.unknown import UnknownInCall

T = TypeVar("T")

ROUNDS = 100
"""Times that a method is started again. Its time limit is the request's."""
REPETITIONS = 3
"""Times that it may miss the same values again, because of reorganisations in between."""


def prove_unknown(registry: MethodRegistry) -> MethodRegistry:
    """Return a registry whose methods prove the unknown values that they read."""
    return registry.map(_proving)


def _proving(method: Method) -> Method:
    def handler(context: Context, *arguments: Any) -> Later[Any]:
        return when_known(context, partial(method.start, context, arguments))

    return replace(method, handler=handler)


def when_known(context: Context, start: Callable[[], Later[T]]) -> Later[T]:
    """Return the result of an operation, started again after unknown values were proved.

    Fails with NotProved, TooManyUnknownValues, and TooManyRounds.
    """
    return start().handle(partial(_unless_unknown, context, start, _Progress()))


@dataclass(slots=True)
class _Progress:
    """The starts of an operation so far: their number, and what the last one has missed.

    repetitions: how often it has missed the same keys as the one before.
    """

    count: int = 1
    missed: Keys = field(default_factory=Keys)
    repetitions: int = 0

    def miss(self, keys: Keys) -> None:
        """Note what a start has missed. Raises: TooManyRounds, NotProved."""
        if self.count > ROUNDS:
            raise TooManyRounds(ROUNDS)
        self.repetitions = self.repetitions + 1 if keys == self.missed else 0
        if self.repetitions == REPETITIONS:
            raise NotProved  # stored ones would be known: the database is damaged
        self.count += 1
        self.missed = keys


def _unless_unknown(
    context: Context,
    start: Callable[[], Later[T]],
    progress: _Progress,
    found: Later[T],
) -> Later[T]:
    """Return a result, or start again."""
    error = found.error
    if not isinstance(error, UnknownValues):
        return found
    is_first = progress.count == 1
    progress.miss(error.keys)
    proved = Later.from_coroutine(_prove(context, error, is_first=is_first))
    again = proved.then(lambda _: start())
    return again.handle(partial(_unless_unknown, context, start, progress))


async def _prove(context: Context, error: UnknownValues, *, is_first: bool) -> None:
    """Prove and store unknown values, and charge for them.

    After the first miss of a call, what an upstream's access list names is proved as well.
    """
    if context.values is None:
        raise ServiceUnavailable
    network = context.network
    keys = Keys(set(error.keys.accounts), set(error.keys.slots))
    if is_first and isinstance(error, UnknownInCall):
        named = await context.values.named_by_upstream(network, error)
        header = await context.store.header(network.id, error.block_hash)
        if "from" not in error.call:
            named.accounts.add(ZERO_ADDRESS)
        if header is not None:
            named.accounts.add(header.coinbase)
        keys.update(await context.store.unknown(network.id, error.block_hash, named))
    await context.values.prove(network.id, keys, context.customer)
    context.charge_values(len(keys))
