"""Dispatch of calls: from an authorized request's bytes to the bytes of its answer.

HTTP requests and the frames of WebSockets are answered by the same dispatchers. A dispatcher
of its own checks the allowlists of keys that have some, before methods are called.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any, NoReturn, TypeVar

from jsonrpc.answers import Answer, Reply
from jsonrpc.departure import Gone
from jsonrpc.dispatch import Dispatcher, Limits
from jsonrpc.errors import RpcError, ServiceUnavailable
from jsonrpc.later import Later
from jsonrpc.params import Schema
from jsonrpc.registry import Method, MethodRegistry
from jsonrpc.turns import Turns
from nodeapi.errors.access import NetworkPreparing
from nodeapi.methods.context import Context
from nodeapi.methods.eth_calls import AskedCall
from nodeapi.methods.log_criteria import LogCriteria
from nodeapi.methods.proving import prove_unknown
from nodeapi.schemas.calls import CALL, CALL_OR_HASH
from nodeapi.schemas.logs import LOG_CRITERIA
from nodeapi.schemas.parity import CALLS_WITH_TYPES
from nodeapi.schemas.state import POSITIONS_BY_ADDRESS
from nodeapi.schemas.values import ADDRESS
from postgres.errors import Unavailable

T = TypeVar("T")

LONG_BYTES = 2**14
"""A longer body may take more than a millisecond to parse."""

_SWITCH_SECONDS = 0.0005
"""Time after which a thread of a serving process yields to another one; 5 ms by default."""

_MAX_PAUSE_SECONDS = 0.1
"""Longest pause between two long bodies."""

_WHILE_PREPARING = frozenset(
    {
        *("eth_syncing", "eth_chainId", "eth_blockNumber", "net_version"),
        *("rpc.discover", "eth_capabilities"),
    }
)
"""Methods that are answered while a network is preparing."""

_CREATION = b""
"""The recipient of a call that creates a contract. It is in no allowlist."""


class Calls:
    """Answers the calls of authorized requests."""

    def __init__(self, registry: MethodRegistry, limits: Limits) -> None:
        translations: dict[type[Exception], type[RpcError]] = {
            Unavailable: ServiceUnavailable
        }
        self._dispatcher = Dispatcher(registry, limits, translations)
        self._guarded = Dispatcher(guard(registry), limits, translations)
        """Dispatcher for keys with allowlists."""
        proving = prove_unknown(registry)
        self._proving = Dispatcher(proving, limits, translations)
        self._proving_guarded = Dispatcher(guard(proving), limits, translations)
        """Dispatchers for networks with a sparse state."""
        few = registry.map(_unless_preparing)
        self._few = Dispatcher(few, limits, translations)
        self._few_guarded = Dispatcher(guard(few), limits, translations)
        """Dispatchers for networks that are preparing."""
        self._long_bodies = LongBodies()
        self.limits = limits

    @property
    def batch_sizes(self) -> Counter[int]:
        """Number of batches so far, by their number of calls."""
        dispatchers = (
            *(self._guarded, self._few, self._few_guarded),
            *(self._proving, self._proving_guarded),
        )
        return sum(
            (one.batch_sizes for one in dispatchers), self._dispatcher.batch_sizes
        )

    def respond(self, body: bytes, context: Context, gone: Gone) -> Later[Answer]:
        """Answer the calls of a body; see `jsonrpc.dispatch.Dispatcher.respond`."""
        dispatcher = self._dispatcher_for(context)
        if len(body) <= LONG_BYTES:
            return dispatcher.respond(body, context, gone)
        return self._long_bodies.prepare(
            partial(dispatcher.prepare, body, context), context.customer
        ).then(dispatcher.answer, context, gone)

    async def call(
        self, name: str, params: object, context: Context, *, size: int, room: int
    ) -> bytes:
        """Call a method, and return its result as JSON.

        params: as in a request. size: bytes of the text that contained them.
        room: maximum size of the result in bytes. Raises: RpcError.
        """
        dispatcher = self._dispatcher_for(context)
        prepare = partial(dispatcher.prepare_call, name, params, context)
        if size <= LONG_BYTES:
            call = prepare()
        else:
            call = await self._long_bodies.prepare(prepare, context.customer)
        return await dispatcher.call(call, context, room)

    def _dispatcher_for(self, context: Context) -> Dispatcher:
        """Return the dispatcher for a key, and for the state of a network."""
        guarded = context.grant.allowlists is not None
        network = context.network
        if network.is_preparing:
            return self._few_guarded if guarded else self._few
        if network.checkpoint_number is not None:
            return self._proving_guarded if guarded else self._proving
        return self._guarded if guarded else self._dispatcher

    def refuse(self, body: bytes, error: RpcError, site: str) -> Reply:
        """Reject a whole body with an error; see `jsonrpc.dispatch.Dispatcher.refuse`."""
        return self._dispatcher.refuse(body, error, site)


class LongBodies:
    """Parses and decodes long request bodies one at a time, in a thread. Customers alternate.

    Decoding the arguments in a body of 5 MB takes up to a third of a second. In a thread,
    other requests are answered between its steps. Parsing JSON holds Python's lock: 5 MB
    of empty arrays take a tenth of a second or more. If many such bodies were parsed at
    once, no other request would be answered until then, and the process's heartbeat would
    stop for so long that its supervisor replaces it. Hence there is a pause between two
    bodies, as long as the first one has taken.
    """

    def __init__(self) -> None:
        self._turns = Turns(1)
        self._pause_end = 0.0
        # The event loop waits for this time whenever the thread has Python's lock.
        sys.setswitchinterval(_SWITCH_SECONDS)

    def prepare(self, prepare: Callable[[], T], customer: Hashable) -> Later[T]:
        """Call a function in a thread when it is the customer's turn. Return its result.

        prepare: parses and decodes a long body.
        """
        return Later.from_coroutine(self._prepare_in_turn(prepare, customer))

    async def _prepare_in_turn(self, prepare: Callable[[], T], customer: Hashable) -> T:
        async with self._turns.place(customer):
            begun = time.monotonic()
            if begun < self._pause_end:
                await asyncio.sleep(self._pause_end - begun)
                begun = time.monotonic()
            try:
                return await asyncio.to_thread(without_collections, prepare)
            finally:
                now = time.monotonic()
                self._pause_end = now + min(now - begun, _MAX_PAUSE_SECONDS)


def without_collections(prepare: Callable[[], T]) -> T:
    """Parse or prepare a body with garbage collection disabled.

    Collections would traverse all parsed objects repeatedly, which takes three times as
    long as parsing. The objects are freed by their reference counts.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return prepare()
    finally:
        if was_enabled:
            gc.enable()


def _recipients(recipients: Iterable[bytes | None]) -> Iterable[bytes]:
    return [_CREATION if to is None else to for to in recipients]


def _searched(criteria: LogCriteria) -> list[bytes]:
    """Return the addresses of a filter. Raises: TooManyAlternatives."""
    criteria.require_few_alternatives()
    addresses = criteria.wanted.addresses or ()
    return [bytes.fromhex(address[2:]) for address in addresses]


def _called(asked: AskedCall | bytes) -> Iterable[bytes]:
    """Return the recipient of a call. Transactions may be traced whatever they call."""
    return () if isinstance(asked, bytes) else _recipients([asked.to])


_ADDRESSES_IN: list[tuple[Schema, Callable[[Any], Iterable[bytes]]]] = [
    (ADDRESS, lambda address: [address]),
    (POSITIONS_BY_ADDRESS, lambda positions: positions),
    (CALL, lambda call: _recipients([call.to])),
    (CALL_OR_HASH, _called),
    (CALLS_WITH_TYPES, lambda calls: _recipients(calls.recipients)),
    (LOG_CRITERIA, _searched),
]
"""Schemas of parameters that name contracts, each with a function that returns their
addresses from a decoded argument."""


def _unless_preparing(method: Method) -> Method:
    """Return the variant of a method for networks that are preparing."""
    if method.name in _WHILE_PREPARING:
        return method
    return replace(method, handler=_refuse, capability=None, is_slow=False)


def _refuse(context: Context, *_: object, **__: object) -> NoReturn:
    network = context.network
    raise NetworkPreparing(network.slug, network.head_number, network.target_number)


def guard(registry: MethodRegistry) -> MethodRegistry:
    """Return a registry whose methods check the key's allowlists before they run."""
    return registry.map(_guarded)


def _guarded(method: Method) -> Method:
    naming = [
        (position, read)
        for position, param in enumerate(method.signature.params)
        for schema, read in _ADDRESSES_IN
        if param.schema == schema
    ]

    def handler(context: Context, *arguments: Any) -> Any:
        allowlists = context.grant.allowlists
        if allowlists is not None:
            allowlists.require_method(method.name)
            for position, read in naming:
                allowlists.require_contracts(read(arguments[position]))
        return method.handler(context, *arguments)

    return replace(method, handler=handler)
