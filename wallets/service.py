"""What the wallet's part of a serving process is made of."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from dataclasses import dataclass, field

from django.db import Error as DatabaseError

from jsonrpc.errors import RpcError
from keys.grants import Grant
from networks.directory import NetworkView
from nodeapi.service import Service
from postgres.errors import Unavailable
from wallets import internal_key
from wallets.caip import EIP155, is_evm_reference, parse_scope
from wallets.errors import InternalError
from wallets.models import UNDECIDED, ConsentRequest, RequestState
from wallets.offers import kept_scopes
from wallets.services.abandoned import abandoned_requests, withdraw_abandoned
from wallets.services.requests import expire_request
from wallets.services.sending import close_abandoned
from wallets.services.sessions import end_expired_sessions, withdraw_chains
from wallets.store import RequestOutcome, WalletStore
from wallets.threads import in_thread
from wallets.watch import Watch

logger = logging.getLogger(__name__)

EXPIRY_INTERVAL = 1.0
"""Seconds between two looks for sessions whose time is over."""

NETWORKS_INTERVAL = 5.0
"""Seconds between two looks whether staff have taken a network from the wallet."""

ABANDONED_SECONDS = 10.0
"""For so long a process must seem dead until what its sockets wait for is taken back:
after an outage of the database it may need some moments to be seen again."""

SENDING_INTERVAL = 5.0
"""Seconds between two looks whether whoever sends a transaction is still there."""

LAST_ROUND_SECONDS = 5.0
"""For so long a round that has begun is waited for at the end."""

RETRY_SECONDS = 1.0
"""Pause before a reading that has failed is tried again."""


@dataclass(slots=True)
class Wallet:
    """The parts that the wallet's methods work with, on top of the node's.

    Made before the node's start, as it listens with the node's listener.
    """

    node: Service
    store: WalletStore
    watch: Watch
    _key: str = field(repr=False)
    _sweep: asyncio.Task[None] | None = None
    _round: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while the database is being changed."""

    async def start(self) -> None:
        """Begin to end what is over; works as well while the database is down."""
        self._sweep = asyncio.create_task(self._end_what_is_over())

    async def stop(self) -> None:
        """Leave that to other processes."""
        if self._sweep is not None:
            with suppress(TimeoutError):  # a thread goes on when its task is cancelled
                async with asyncio.timeout(LAST_ROUND_SECONDS), self._round:
                    pass
            self._sweep.cancel()
            await asyncio.gather(self._sweep, return_exceptions=True)

    async def grant(self) -> Grant:
        """Return what the wallet's API key opens.

        Raises: InternalError when staff have taken it away; Unavailable.
        """
        try:
            found = self.node.grants.resolve(self._key)
            return found if isinstance(found, Grant) else await found
        except RpcError as error:  # which key it is concerns no dapp
            logger.warning("the wallet's own API key is refused: %s", error)
            raise InternalError from error

    def network(self, scope: str) -> NetworkView | None:
        """Return the network that serves a chain's scope, None when none does.

        Of several with the same chain id it is the oldest, as in `wallets.offers`.
        Raises: Unavailable.
        """
        namespace, reference = parse_scope(scope)
        if namespace != EIP155 or not is_evm_reference(reference or ""):
            return None
        networks = self.node.directory.all()
        return next((n for n in networks if str(n.chain_id) == reference), None)

    async def decision(self, request: ConsentRequest) -> RequestOutcome:
        """Wait until a request is decided, and sent if need be; at its end it expires."""
        changed = asyncio.Event()
        unfollow = self.watch.follow_dapp(request.dapp_id, changed.set)
        try:
            while True:
                changed.clear()
                try:
                    found = await self.store.request(request.pk)
                    if found is None:  # the dapp was deleted
                        return RequestOutcome(RequestState.WITHDRAWN, b"")
                    if found.state not in UNDECIDED:
                        return found
                    seconds = request.expires_at.timestamp() - time.time()
                    if found.state == RequestState.SENDING:
                        await in_thread(close_abandoned, request_id=request.pk)
                        seconds = SENDING_INTERVAL
                    elif seconds <= 0:
                        await in_thread(expire_request, request_id=request.pk)
                        continue
                except (Unavailable, DatabaseError):
                    seconds = RETRY_SECONDS
                with suppress(TimeoutError):
                    async with asyncio.timeout(seconds):
                        await changed.wait()
        finally:
            unfollow()

    async def _end_what_is_over(self) -> None:
        """End sessions at their time, and requests for which nobody waits any more."""
        while True:
            try:
                async with self._round:
                    await in_thread(internal_key.ensure)
                abandoned: dict[int, float] = {}
                kept: frozenset[str] = frozenset()
                follow_at = 0.0
                while True:
                    async with self._round:
                        await in_thread(end_expired_sessions)
                        if time.monotonic() >= follow_at:
                            kept = await in_thread(_follow_networks, kept)
                            follow_at = time.monotonic() + NETWORKS_INTERVAL
                        abandoned = await self._withdraw_abandoned(abandoned)
                    await asyncio.sleep(EXPIRY_INTERVAL)
            except DatabaseError as error:
                logger.info("sessions are not ended: %s", error)
            await asyncio.sleep(RETRY_SECONDS)

    async def _withdraw_abandoned(self, before: dict[int, float]) -> dict[int, float]:
        """Withdraw requests that seem abandoned for long enough.

        before: since when which requests do, on the monotonic clock; returned anew.
        """
        now = time.monotonic()
        found = await in_thread(abandoned_requests)
        since = {request_id: before.get(request_id, now) for request_id in found}
        due = [key for key, first in since.items() if now - first >= ABANDONED_SECONDS]
        if due:
            await in_thread(withdraw_abandoned, due)
        return since


def _follow_networks(before: frozenset[str]) -> frozenset[str]:
    """Return what sessions may hold; where it has changed, take the rest from them."""
    kept = kept_scopes()
    if kept != before:
        withdraw_chains(kept)
    return kept


def build_wallet(node: Service) -> Wallet:
    """Put the parts together; to be called before the node's parts are started."""
    return Wallet(
        node=node,
        store=WalletStore(node.connections),
        watch=Watch(node.listener),
        _key=internal_key.secret(),
    )
