"""What the methods know of a request."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from dataclasses import dataclass, field
from time import perf_counter_ns

from jsonrpc.errors import RpcError
from jsonrpc.registry import Method
from keys import permits
from keys.grants import Grant
from keys.metering import OK, UNKNOWN_METHOD, outcome_of
from networks.directory import NetworkView
from nodeapi import conf
from nodeapi.errors import MethodNotEntitled, TracerNotAvailable, TracerNotEntitled
from nodeapi.http import RequestId
from nodeapi.ports import Limiter, Meter, Store, Tracing

TRACE = permits.TRACE
"""The capability to have blocks traced."""


@dataclass(slots=True)
class Context:
    """A request that was let in: by what key, to which network, and what it reads.

    tracing: executes blocks again; None where nothing does.
    limiter, meter: None where nothing is charged or counted.
    started: when the request came, in nanoseconds of `time.perf_counter_ns`.
    record: where each call's method and error are put down; None: nowhere.
    """

    request_id: RequestId
    grant: Grant
    network: NetworkView
    store: Store
    tracing: Tracing | None = None
    limiter: Limiter | None = None
    meter: Meter | None = None
    started: int = 0
    record: list[tuple[str | None, RpcError | None]] | None = None
    _turn: asyncio.Lock | None = field(default=None, init=False)

    @property
    def turn(self) -> asyncio.Lock:
        """What a request's calls take turns by, where each would take much."""
        if self._turn is None:
            self._turn = asyncio.Lock()
        return self._turn

    def charge(self, credits: int) -> Awaitable[None] | None:
        """Take what a request costs from its key; at once, if there is enough at hand.

        Raises, when awaited: see `keys.limiter.errors`.
        """
        grant, limiter = self.grant, self.limiter
        if limiter is None:
            return None
        return limiter.charge(grant.api_key_id, grant.limits, credits)

    def refund(self, credits: int) -> None:
        """Give back to the key what a call was charged too much."""
        if self.limiter is not None:
            self.limiter.refund(self.grant.api_key_id, self.grant.limits, credits)

    def book(
        self, method: str | None, credits: int, size: int, error: RpcError | None
    ) -> None:
        """Count a call for the statistics of its key."""
        if self.record is not None:
            self.record.append((method, error))
        if self.meter is None:
            return
        passed = perf_counter_ns() - self.started
        grant = self.grant
        use = (
            grant.version_id,
            grant.api_key_id,
            self.network.id,
            method or UNKNOWN_METHOD,
            OK if error is None else outcome_of(error),
        )
        self.meter.book(use, credits, passed // 1000, size)
        if error is not None and error.reason:
            self.meter.refuse(
                grant.api_key_id, self.network.id, method or "", error.reason
            )

    def authorise(self, method: Method) -> None:
        """Raise MethodNotEntitled when the key lacks what a method demands."""
        if method.capability is None:
            return
        permit = self.grant.permits.get((self.network.id, method.capability))
        if permit is None or permit.has_expired(time.time()):
            raise MethodNotEntitled(
                method.name,
                self.network.slug,
                contact=conf.support_contact(),
                expired_at=None if permit is None else permit.expires_at,
            )

    def require_tracer(self, tracer: str) -> None:
        """Refuse a tracer that is not for this key or this network.

        tracer: as in networks.models.Tracer. A mux is asked for itself and for each
            of the tracers in it.
        Raises: TracerNotAvailable when the network does not offer it;
            TracerNotEntitled when the key was granted others.
        """
        network = self.network
        if tracer not in network.tracers:
            raise TracerNotAvailable(tracer, network.slug, network.tracers)
        permit = self.grant.permits.get((network.id, TRACE))
        if permit is None or not permit.covers(tracer):
            raise TracerNotEntitled(
                tracer, network.slug, contact=conf.support_contact()
            )
