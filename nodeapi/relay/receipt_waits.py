"""Calls that wait until a block contains a transaction."""

from __future__ import annotations

import asyncio

from networks.directory import Directory
from nodeapi.relay.bounds import CallsInFlight
from nodeapi.results.answers import Answer
from nodeapi.store import Store
from postgres.errors import Unavailable


class ReceiptWaits:
    """Looks for receipts after each new head."""

    def __init__(self, directory: Directory, store: Store) -> None:
        self._directory = directory
        self._store = store
        self._calls = CallsInFlight()
        self._heads: dict[asyncio.Event, tuple[int, bytes | None]] = {}
        """Event of each waiting call → network id and the head that it has seen."""
        directory.subscribe(self._wake)

    async def wait(
        self, network_id: int, transaction_hash: bytes, payer: int, seconds: float
    ) -> Answer | None:
        """Return the receipt of a transaction as soon as a block contains it.

        payer: the id of the API key. None if no block contains it after a time.

        Raises: TooManyRelayedCalls, Unavailable.
        """
        changed = asyncio.Event()
        with self._calls.hold(payer):
            try:
                async with asyncio.timeout(seconds):
                    while True:
                        self._heads[changed] = network_id, self._head(network_id)
                        changed.clear()
                        found = await self._store.receipt(network_id, transaction_hash)
                        if found is not None:
                            return found
                        await changed.wait()
            except TimeoutError:
                return None
            finally:
                self._heads.pop(changed, None)

    def _wake(self) -> None:
        """Wake up the calls whose network has another head."""
        for event, (network_id, head) in self._heads.items():
            if self._head(network_id) != head:
                event.set()

    def _head(self, network_id: int) -> bytes | None:
        try:
            network = self._directory.get(network_id)
        except Unavailable:
            return None
        return None if network is None else network.head_hash
