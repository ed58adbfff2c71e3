"""Methods on networks with a sparse state: unknown values are proved, then read again.

A method that meets unknown values fails with `UnknownValues`, wherever it reads them: in
the store or in a worker process. It is started again when they are stored. So no method
has to know that a state may be sparse, and none can take an unknown value for zero.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from evm.proved_state import Keys, UnknownValues
from evm.simulation.arguments import ZERO_ADDRESS
from jsonrpc.errors import ServiceUnavailable
from jsonrpc.later import Later
from jsonrpc.registry import Method, MethodRegistry
from nodeapi.errors.proofs import TooManyRounds
from nodeapi.methods.context import Context
from nodeapi.proofs.unknown import UnknownInCall

T = TypeVar("T")

ROUNDS = 100
"""Times that a method is started again. Its time limit is the request's."""


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
    return start().handle(partial(_unless_unknown, context, start, 1))


def _unless_unknown(
    context: Context, start: Callable[[], Later[T]], number: int, found: Later[T]
) -> Later[T]:
    """Return a result, or start again. number: of starts."""
    error = found.error
    if not isinstance(error, UnknownValues):
        return found
    if number > ROUNDS:
        raise TooManyRounds(ROUNDS)
    proved = Later.from_coroutine(_prove(context, error, is_first=number == 1))
    again = proved.then(lambda _: start())
    return again.handle(partial(_unless_unknown, context, start, number + 1))


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
