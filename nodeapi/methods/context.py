"""The context of a request, which methods receive."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Hashable
from dataclasses import dataclass, field
from math import ceil
from time import perf_counter_ns
from typing import Protocol

from django.conf import settings

from jsonrpc.errors import RpcError, ServiceUnavailable
from jsonrpc.later import DONE, Later
from jsonrpc.registry import Method
from keys import permits
from keys.grants import Grant
from keys.limiter.limiter import Limiter
from keys.metering.meter import OK, UNKNOWN_METHOD, Meter, outcome_of
from keys.site import Headers, site_of, tracing_path
from networks.directory import NetworkView
from nodeapi.errors.access import (
    MethodNotEntitled,
    TracerNotAvailable,
    TracerNotEntitled,
)
from nodeapi.filters.filters import Filters
from nodeapi.logs.filter import LogSelection
from nodeapi.proofs.allowance import Allowance
from nodeapi.proofs.reads import ValueReader
from nodeapi.proofs.unknown import PastStates
from nodeapi.relay.pools import TransactionPools
from nodeapi.relay.relay import Relay
from nodeapi.store import Store
from nodeapi.tracing.pool import TracePool
from server.request_id import RequestId

TRACE = permits.TRACE
"""The capability to request traces."""


class Notifier(Protocol):
    """Opens and ends the subscriptions of a socket; see `nodeapi.sockets.peer`."""

    async def subscribe(
        self, kind: str, logs: LogSelection | None, *, is_full: bool
    ) -> str:
        """Open a subscription and return its id. It begins after the call's response.

        kind: newHeads, logs, newPendingTransactions or syncing.
        logs: the logs to send, for logs only.
        is_full: for pending transactions, whether to send objects instead of hashes.

        Raises: ContractNotAllowed, MethodNotAllowlisted, TooManySubscriptions,
            Unavailable.
        """

    def unsubscribe(self, subscription: str) -> bool:
        """End a subscription. Return False if the socket has none with this id."""


FREE_SECONDS = 0.1
"""Processor time of an execution that is part of its method's price."""

CREDITS_PER_VALUE = 10
"""Price of an account or slot of a sparse state that was unknown: that of eth_getProof."""

CREDITS_PER_SECOND = 1000
"""Price of further processor time. The rate of the plan `free` pays for half a process."""


@dataclass(slots=True)
class Context:
    """An authenticated request: its key, its network, and the service's parts.

    tracing: executes blocks again, or None if the service does not.
    limiter, meter: None to charge or count nothing.
    started: arrival time, in nanoseconds of `time.perf_counter_ns`.
    relay: asks upstreams, or None if the service does not.
    filters: the filters that clients poll, or None if the service has none.
    headers: of the request, or of the socket's handshake. None if it has none.
    notifier: the socket that the request has arrived on, None over HTTP.
    record: stores each call's method and error for the log, or None.
    user: the user of the wallet for whom it calls, None for the holder of the key.
    values: proves unknown values of sparse states, or None if the service does not.
    """

    request_id: RequestId
    grant: Grant
    network: NetworkView
    store: Store
    tracing: TracePool | None = None
    limiter: Limiter | None = None
    meter: Meter | None = None
    started: int = 0
    relay: Relay | None = None
    filters: Filters | None = None
    headers: Headers | None = None
    notifier: Notifier | None = None
    record: list[tuple[str | None, RpcError | None]] | None = None
    user: int | None = None
    values: ValueReader | None = None
    allowance: Allowance = field(default_factory=Allowance, init=False)
    """What may still be fetched from upstreams for this request."""
    _turn: asyncio.Lock | None = field(default=None, init=False)
    spent: int = field(default=0, init=False)
    """Credits of the calls that were answered."""
    _surcharge: int = field(default=0, init=False)
    past: dict[Hashable, PastStates] | None = field(default=None, init=False)
    """Values of states below the checkpoint for the next attempt of an execution, by its
    `nodeapi.proofs.unknown.UnknownPast.job`. None without any."""

    @property
    def turn(self) -> asyncio.Lock:
        """Lock for the request's expensive calls, which are executed one at a time."""
        if self._turn is None:
            self._turn = asyncio.Lock()
        return self._turn

    @property
    def payer(self) -> int:
        """The id of the API key."""
        return self.grant.api_key_id

    @property
    def executor(self) -> Hashable:
        """The id under which concurrent executions are counted: a key or a wallet user.

        All users of the wallet share one key, but each of them has counts of their own.
        """
        payer = self.payer
        return payer if self.user is None else (payer, self.user)

    @property
    def customer(self) -> int:
        """The id of the customer account, whose calls take turns with those of other accounts.

        It is the key's owner, or the user of the wallet, whose key has no such owner.
        """
        return self.grant.owner_id if self.user is None else self.user

    @property
    def site(self) -> str:
        """Base URL of the links in errors."""
        return site_of(self.headers or {})

    @property
    def _tracing_page(self) -> str:
        """Path of the page on which the key's owner requests access to tracing."""
        return tracing_path(self.grant.api_key_id, self.network.slug)

    @property
    def pending(self) -> Relay | None:
        """The relay, which reads pending blocks. None if the network has no upstream."""
        return self.relay if self.network.upstreams else None

    @property
    def sending(self) -> Relay:
        """The relay, which sends transactions. Raises: ServiceUnavailable."""
        if self.relay is None:
            raise ServiceUnavailable("this service accepts no transactions")
        return self.relay

    @property
    def pools(self) -> TransactionPools:
        """The transaction pools of all networks. Raises: ServiceUnavailable."""
        return self.sending.pools

    def charge(self, credits: int) -> Later[None]:
        """Charge the API key with the credits that a request costs.

        Fails with an error of `keys.limiter.errors`.
        """
        grant, limiter = self.grant, self.limiter
        if limiter is None:
            return DONE
        return limiter.charge(grant.api_key_id, grant.limits, credits)

    def refund(self, credits: int) -> None:
        """Refund credits that a call was overcharged."""
        if self.limiter is not None:
            self.limiter.refund(self.grant.api_key_id, self.grant.limits, credits)

    def charge_more(self, credits: int) -> None:
        """Charge credits for an execution that has cost more than its method's price.

        The execution is answered even if the key has no credits left. They become a debt
        then, and further requests are rejected until the rate has paid it. The credits
        are counted with the next call of the request that is answered.
        """
        self._surcharge += credits
        if self.limiter is not None:
            self.limiter.owe(self.grant.api_key_id, self.grant.limits, credits)

    def charge_time(self, seconds: float) -> None:
        """Charge the processor time of an execution beyond FREE_SECONDS.

        Users of the wallet are not charged, because the debt of one of them would stop
        the calls of all others. They are limited by their turns.
        """
        credits = ceil(max(0.0, seconds - FREE_SECONDS) * CREDITS_PER_SECOND)
        if credits and self.user is None:
            self.charge_more(credits)

    def charge_values(self, count: int) -> None:
        """Charge unknown values that were proved. Users of the wallet as in `charge_time`."""
        if self.user is None:
            self.charge_more(count * CREDITS_PER_VALUE)

    def book(
        self, method: str | None, credits: int, size: int, error: RpcError | None
    ) -> None:
        """Count a call for the statistics of its key."""
        if self.record is not None:
            self.record.append((method, error))
        if self._surcharge:
            credits += self._surcharge
            self._surcharge = 0
        self.spent += credits
        meter = self.meter
        if meter is None:
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
        meter.book(use, credits, passed // 1000, size)
        if error is not None:
            name = method or error.unknown_method or ""
            meter.fail(grant.api_key_id, self.network.id, name, error)

    def authorise(self, method: Method) -> None:
        """Raise MethodNotEntitled if the key lacks the method's capability."""
        if method.capability is None:
            return
        permit = self.grant.permits.get((self.network.id, method.capability))
        if permit is None or permit.has_expired(time.time()):
            raise MethodNotEntitled(
                method.name,
                self.network.slug,
                tracing_page=self._tracing_page,
                contact=settings.NODEAPI_SUPPORT_CONTACT,
                expired_at=None if permit is None else permit.expires_at,
            )

    def require_tracer(self, tracer: str) -> None:
        """Check that the network offers a tracer and that the key may use it.

        tracer: as in networks.models.Tracer. For a mux, call this for the mux and for
            each of its tracers.

        Raises: TracerNotAvailable if the network does not offer it; TracerNotEntitled
            if the key's entitlement excludes it.
        """
        network = self.network
        if tracer not in network.tracers:
            raise TracerNotAvailable(tracer, network.slug, network.tracers)
        permit = self.grant.permits.get((network.id, TRACE))
        if permit is None or not permit.covers(tracer):
            raise TracerNotEntitled(
                tracer,
                network.slug,
                tracing_page=self._tracing_page,
                contact=settings.NODEAPI_SUPPORT_CONTACT,
            )
