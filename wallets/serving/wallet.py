"""The wallet's part of a serving process."""

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
from nodeapi.endpoint.calls import Calls
from nodeapi.node import Node
from postgres.errors import Unavailable
from wallets import internal_key
from wallets.caip import EIP155, is_evm_reference, parse_scope
from wallets.errors import InternalError
from wallets.models import UNDECIDED, ConsentRequest, RequestState
from wallets.offers import kept_scopes
from wallets.services.requests import (
    abandoned_requests,
    expire_request,
    withdraw_abandoned,
)
from wallets.services.sending import close_abandoned
from wallets.services.sessions import end_expired_sessions, withdraw_chains
from wallets.serving.store import RequestOutcome, WalletStore
from wallets.serving.threads import in_thread
from wallets.serving.watch import Watch

logger = logging.getLogger(__name__)

EXPIRY_INTERVAL = 1.0
"""Seconds between two checks for expired sessions."""

NETWORKS_INTERVAL = 5.0
"""Seconds between two checks for networks that the wallet no longer serves."""

ABANDONED_SECONDS = 5.0
"""Time for which a process must seem dead before its sockets' requests are withdrawn.
After a database outage a live process needs some moments to renew its row."""

SENDING_INTERVAL = 5.0
"""Seconds between two checks whether the process that sends a transaction still runs."""

LAST_ROUND_SECONDS = 5.0
"""Time limit at shutdown for a sweep in progress."""

RETRY_SECONDS = 1.0
"""Pause after a database error."""


@dataclass(slots=True)
class Wallet:
    """The wallet's parts that its methods use, in addition to those of the node.

    calls: those of the endpoint `/v3`, which answer the methods of the node.
    """

    node: Node
    calls: Calls
    store: WalletStore
    watch: Watch
    _key: str = field(repr=False)
    _sweep: asyncio.Task[None] | None = None
    _round: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while the sweep changes the database."""

    async def start(self) -> None:
        """Start the periodic clean-up. This also works while the database is down."""
        self._sweep = asyncio.create_task(self._run_sweep())

    async def stop(self) -> None:
        """Stop the periodic clean-up."""
        if self._sweep is not None:
            with suppress(TimeoutError):  # a cancelled task's thread continues
                async with asyncio.timeout(LAST_ROUND_SECONDS), self._round:
                    pass
            self._sweep.cancel()
            await asyncio.gather(self._sweep, return_exceptions=True)

    async def grant(self) -> Grant:
        """Return the grant of the wallet's API key.

        Raises: InternalError when staff have revoked the key; Unavailable.
        """
        try:
            return await self.node.grants.resolve(self._key)
        except RpcError as error:  # the dapp must not learn about the key
            logger.warning("the wallet's own API key is rejected: %s", error)
            raise InternalError from error

    def network(self, scope: str) -> NetworkView | None:
        """Return the network of a chain's scope, None if it is not served.

        Of several networks with the same chain id it is the oldest visible one, as in
        `wallets.offers`, and without a visible one the oldest.
        Raises: Unavailable.
        """
        namespace, reference = parse_scope(scope)
        if namespace != EIP155 or not is_evm_reference(reference or ""):
            return None
        networks = self.node.directory.all()
        found = [
            network
            for network in networks
            if str(network.chain_id) == reference and not network.is_preparing
        ]
        return next((n for n in found if n.is_visible), found[0] if found else None)

    async def decision(self, request: ConsentRequest) -> RequestOutcome:
        """Wait until a request is decided, expires or, for a transaction, was sent."""
        changed = asyncio.Event()
        unsubscribe = self.watch.subscribe_dapp(request.dapp, changed.set)
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
            unsubscribe()

    async def _run_sweep(self) -> None:
        """End expired sessions and withdraw abandoned requests until cancelled."""
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
                logger.info("expired sessions were not ended: %s", error)
            await asyncio.sleep(RETRY_SECONDS)

    async def _withdraw_abandoned(self, before: dict[int, float]) -> dict[int, float]:
        """Withdraw requests that were abandoned ABANDONED_SECONDS ago.

        before: request ids with the monotonic time since when they seem abandoned.
        Returns: the same, brought up to date.
        """
        now = time.monotonic()
        found = await in_thread(abandoned_requests)
        since = {request_id: before.get(request_id, now) for request_id in found}
        due = [key for key, first in since.items() if now - first >= ABANDONED_SECONDS]
        if due:
            await in_thread(withdraw_abandoned, due)
        return since


def _follow_networks(before: frozenset[str]) -> frozenset[str]:
    """Return the scopes that sessions may keep; remove the others from all sessions."""
    kept = kept_scopes()
    if kept != before:
        withdraw_chains(kept)
    return kept


def build_wallet(node: Node, calls: Calls) -> Wallet:
    """Create the wallet's parts. calls: those of the endpoint `/v3`."""
    return Wallet(
        node=node,
        calls=calls,
        store=WalletStore(node.connections),
        watch=Watch(node.subscriber),
        _key=internal_key.secret(),
    )
