"""Methods on networks with a sparse state: unknown values are proved, then read again.

A method that meets unknown values fails with `UnknownValues`, wherever it reads them: in
the store or in a worker process. It is started again when they are stored. So no method
has to know that a state may be sparse, and none can take an unknown value for zero.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from evm.proved_state import Keys, ProvedValues, UnknownValues
from evm.simulation.arguments import ZERO_ADDRESS
from jsonrpc.errors import ServiceUnavailable
from jsonrpc.later import Later
from jsonrpc.registry import Method, MethodRegistry
from nodeapi.errors.blocks import HeaderForHashNotFound, HistoryPruned, NotProved
from nodeapi.errors.proofs import TooManyRounds
from nodeapi.methods.context import Context
from nodeapi.proofs.unknown import UnknownAfter, UnknownInCall, UnknownPast

if TYPE_CHECKING:
    from nodeapi.proofs.reads import ValueReader

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

    Fails with NotProved, HistoryPruned, TooManyUnknownValues, TooMuchToProve, and
    TooManyRounds.
    """
    return start().handle(partial(_unless_unknown, context, start, _Progress()))


@dataclass(slots=True)
class _Progress:
    """What the starts of an operation have missed.

    misses: their number. missed: by the last one. repetitions: how often that were the
    same keys as of the one before.
    """

    misses: int = 0
    missed: Keys = field(default_factory=Keys)
    repetitions: int = 0

    def miss(self, keys: Keys) -> None:
        """Note what a start has missed. Raises: TooManyRounds, NotProved."""
        if self.misses == ROUNDS:
            raise TooManyRounds(ROUNDS)
        self.repetitions = self.repetitions + 1 if keys == self.missed else 0
        if self.repetitions == REPETITIONS:
            raise NotProved  # stored ones would be known: the database is damaged
        self.misses += 1
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
    progress.miss(error.keys)
    proved = Later.from_coroutine(_prove(context, error, progress))
    again = proved.then(lambda _: start())
    return again.handle(partial(_unless_unknown, context, start, progress))


async def _prove(context: Context, error: UnknownValues, progress: _Progress) -> None:
    """Prove and store unknown values, and charge for them.

    After the first miss of a call, what an upstream's access list names is proved as well.
    """
    if context.values is None:
        raise ServiceUnavailable
    if isinstance(error, UnknownPast):
        await _prove_past(context, context.values, error, is_first=progress.misses == 1)
        return
    network = context.network
    keys = Keys(set(error.keys.accounts), set(error.keys.slots))
    if progress.misses == 1 and isinstance(error, UnknownInCall):
        named = await _named_in_call(context, context.values, error)
        keys.update(await context.store.unknown(network.id, error.block_hash, named))
    read_after = error.block_hash if isinstance(error, UnknownAfter) else None
    async with context.allowance.fetch(len(keys)):
        await context.values.prove(network.id, keys, context.customer, read_after)
    if not progress.repetitions:
        context.charge_values(len(keys))


async def _named_in_call(
    context: Context, values: ValueReader, unknown: UnknownInCall
) -> Keys:
    """Return what a call probably reads."""
    network = context.network
    named = await values.named_by_upstream(network, unknown)
    header = await context.store.header(network.id, unknown.block_hash)
    if "from" not in unknown.call:
        named.accounts.add(ZERO_ADDRESS)
    if header is not None:
        named.accounts.add(header.coinbase)
    return named


async def _prove_past(
    context: Context, values: ValueReader, error: UnknownPast, *, is_first: bool
) -> None:
    """Prove values of a state below the checkpoint, cache them, and charge for them.

    An execution gets them with its next attempt, in `Context.past`.

    Raises: HistoryPruned if no upstream proves them.
    """
    network, store, block_hash = context.network, context.store, error.block_hash
    keys = Keys(set(error.keys.accounts), set(error.keys.slots))
    state = await store.header(network.id, block_hash)
    if state is None:
        raise HeaderForHashNotFound
    # The oldest block with a trace is the one after the checkpoint.
    is_executed = error.executed is not None
    pruned = HistoryPruned((network.checkpoint_number or 0) + is_executed)
    is_kept = not store.kept_values(network.id, block_hash, keys).missing(keys)
    if not is_kept and values.past.is_pruned(network, state.number):
        raise pruned
    if is_first and error.call is not None:
        keys.update(await _named_in_call(context, values, error.call))
    if is_first and error.executed is not None:
        header = await store.header(network.id, error.executed)
        if header is not None:
            keys.update(await values.past.named_in_block(network, header))
    found = store.kept_values(network.id, block_hash, keys)
    missing = found.missing(keys)
    if missing:
        try:
            proved = await values.past.values(network, state, missing, context.customer)
        except HistoryPruned:
            raise pruned from None
        store.keep_values(network.id, block_hash, proved)
        context.charge_values(len(missing))
        found.update(proved)
    if error.job is not None:
        context.past = context.past or {}
        states = context.past.setdefault(error.job, {})
        states.setdefault(block_hash, ProvedValues()).update(found)
