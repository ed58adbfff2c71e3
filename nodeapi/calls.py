"""Dispatch of calls: from an authorized request's bytes to the bytes of its answer.

HTTP requests and the frames of WebSockets are answered by the same dispatchers.
"""

from __future__ import annotations

from collections import Counter
from functools import partial

from jsonrpc.answers import Answer, Reply
from jsonrpc.departure import Gone
from jsonrpc.dispatch import Dispatcher, Limits
from jsonrpc.errors import RpcError, ServiceUnavailable
from jsonrpc.later import Later
from jsonrpc.registry import MethodRegistry
from nodeapi.guards import guard
from nodeapi.long_bodies import LONG_BYTES, LongBodies
from nodeapi.methods.context import Context
from postgres.errors import Unavailable


class Calls:
    """Answers the calls of authorized requests."""

    def __init__(self, registry: MethodRegistry, limits: Limits) -> None:
        translations: dict[type[Exception], type[RpcError]] = {
            Unavailable: ServiceUnavailable
        }
        self._dispatcher = Dispatcher(registry, limits, translations)
        self._guarded = Dispatcher(guard(registry), limits, translations)
        """Dispatcher for keys with allowlists."""
        self._long_bodies = LongBodies()
        self.limits = limits

    @property
    def batch_sizes(self) -> Counter[int]:
        """Number of batches so far, by their number of calls."""
        return self._dispatcher.batch_sizes + self._guarded.batch_sizes

    def respond(self, body: bytes, context: Context, gone: Gone) -> Later[Answer]:
        """Answer the calls of a body; see `jsonrpc.dispatch.Dispatcher.respond`."""
        guarded = context.grant.allowlists is not None
        dispatcher = self._guarded if guarded else self._dispatcher
        if len(body) <= LONG_BYTES:
            return dispatcher.respond(body, context, gone)
        return self._long_bodies.prepare(
            partial(dispatcher.prepare, body, context)
        ).then(dispatcher.answer, context, gone)

    def refuse(self, body: bytes, error: RpcError, site: str) -> Reply:
        """Reject a whole body with an error; see `jsonrpc.dispatch.Dispatcher.refuse`."""
        return self._dispatcher.refuse(body, error, site)
