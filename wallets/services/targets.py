"""Recipients of the wallet's transactions: a network's upstreams, or its local pool."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import psycopg

from networks.models import Network, NetworkState
from nodeapi.mempool.submitting import next_nonce, submit_transaction
from nodeapi.node import database_conninfo
from nodeapi.upstreams.errors import UpstreamUnavailable
from wallets.errors import NotSent
from wallets.upstream import (
    Upstream,
    UpstreamRefused,
    first_available,
    send_to_all,
)

logger = logging.getLogger(__name__)

NO_TRANSACTIONS = "this network accepts no transactions"
NODE_UNAVAILABLE = "the network's node does not respond"
CONNECT_SECONDS = 5
"""Time limit for connecting to the database."""


class Target(Protocol):
    """Accepts transactions of a network, and knows the nonces of accounts."""

    def next_nonce(self, address: str) -> int:
        """Return an account's nonce after its pending transactions. Raises: NotSent."""

    def send(self, raw: bytes, transaction_hash: str) -> NotSent | None:
        """Send a signed transaction; return the failure, None if it was accepted."""


def network_of(chain_id: int) -> Network | None:
    """Return the network with a chain id, None without one; see `Wallet.network`."""
    served = Network.objects.exclude(state=NetworkState.RETIRED)
    prepared = served.filter(chain_id=chain_id, is_preparing=False)
    found = list(prepared.order_by("pk"))
    visible = (network for network in found if network.is_visible)
    return next(visible, found[0] if found else None)


def target_of(chain_id: int) -> Target:
    """Return the target of the network with a chain id.

    Raises: NotSent if there is no such network, if it has neither upstreams nor blocks,
        or if it started at a checkpoint and has no upstreams.
    """
    network = network_of(chain_id)
    if network is None:
        raise NotSent(NO_TRANSACTIONS)
    enabled = network.upstreams.filter(is_enabled=True)
    upstreams = [Upstream(each.url, each.headers) for each in enabled]
    if upstreams:
        return UpstreamTarget(upstreams)
    if network.head_hash is None or network.checkpoint_number is not None:
        # The local pool of a network with a checkpoint does not know all senders.
        raise NotSent(NO_TRANSACTIONS)
    return LocalTarget(network.pk)


class UpstreamTarget:
    """The enabled upstreams of a network."""

    def __init__(self, upstreams: Sequence[Upstream]) -> None:
        self._upstreams = upstreams

    def next_nonce(self, address: str) -> int:
        """Return the nonce that the first available upstream names."""
        upstreams = self._upstreams
        try:
            return asyncio.run(
                first_available(upstreams, lambda one: one.nonce(address))
            )
        except UpstreamUnavailable as error:
            raise NotSent(NODE_UNAVAILABLE) from error
        except UpstreamRefused as error:
            raise NotSent(error.message, error.code, error.data) from error

    def send(self, raw: bytes, transaction_hash: str) -> NotSent | None:
        """Send a transaction to all upstreams. One that accepts it is enough."""
        try:
            asyncio.run(send_to_all(self._upstreams, raw, transaction_hash))
        except UpstreamUnavailable as error:
            logger.warning("the nodes of a network do not respond: %s", error)
            return unknown_outcome(transaction_hash)
        except UpstreamRefused as error:
            return NotSent(error.message, error.code, error.data)
        return None


class LocalTarget:
    """The local pool of a network without upstreams. No block includes its transactions."""

    def __init__(self, network_id: int) -> None:
        self._network_id = network_id

    def next_nonce(self, address: str) -> int:
        """Return the nonce after the account's transactions in the pool."""
        try:
            with _connection() as connection:
                account = bytes.fromhex(address[2:])
                return next_nonce(connection, self._network_id, account)
        except psycopg.Error as error:
            raise NotSent(NODE_UNAVAILABLE) from error

    def send(self, raw: bytes, transaction_hash: str) -> NotSent | None:
        """Add a transaction to the pool, unless geth's rules forbid it."""
        try:
            with _connection() as connection:
                submit_transaction(connection, self._network_id, raw)
        except ValueError as error:
            return NotSent(str(error))
        except LookupError:
            return NotSent(NO_TRANSACTIONS)
        except psycopg.Error as error:
            logger.warning("a transaction was not added to the local pool: %s", error)
            return unknown_outcome(transaction_hash)
        return None


def unknown_outcome(transaction_hash: str) -> NotSent:
    """Return the failure of a transaction that a node may have accepted."""
    text = (
        f"the network's node did not respond; it may have accepted {transaction_hash}"
    )
    return NotSent(text, data={"hash": transaction_hash})


@contextmanager
def _connection() -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(
        database_conninfo(), autocommit=True, connect_timeout=CONNECT_SECONDS
    ) as connection:
        yield connection
