"""Settings of the wallet, with their defaults."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings


def request_lifetime() -> timedelta:
    """Return how long the user has to answer a request.

    WALLETS_REQUEST_SECONDS; 300 is WalletConnect's lifetime of a proposal.
    """
    return timedelta(seconds=float(getattr(settings, "WALLETS_REQUEST_SECONDS", 300)))


def max_pending_requests() -> int:
    """Return how many requests of all dapps together may wait for one user.

    WALLETS_MAX_PENDING; nobody reads a longer list with care.
    """
    return int(getattr(settings, "WALLETS_MAX_PENDING", 5))


def token_lifetime() -> timedelta:
    """Return how long a connection token lives after its last use.

    WALLETS_TOKEN_DAYS; 90.
    """
    return timedelta(days=float(getattr(settings, "WALLETS_TOKEN_DAYS", 90)))


def history() -> timedelta:
    """Return for how long users can look up what was asked and done.

    WALLETS_HISTORY_DAYS; 365.
    """
    return timedelta(days=float(getattr(settings, "WALLETS_HISTORY_DAYS", 365)))


def echo_to_requester() -> bool:
    """Return whether the socket whose call changes a session is told of that, too.

    WALLETS_ECHO_TO_REQUESTER; MetaMask does, with the event before the answer. Clients
    that give up waiting while the user thinks hear of his consent in no other way;
    simple ones take the next frame for their answer.
    """
    return bool(getattr(settings, "WALLETS_ECHO_TO_REQUESTER", False))


def scrypt_cost() -> int:
    """Return the cost N of the keystores that are made, a power of two.

    WALLETS_SCRYPT_COST; with 2**17 each takes 128 MiB and some half a second, which is
    OWASP's least for passwords. Only tests need another one.
    """
    return int(getattr(settings, "WALLETS_SCRYPT_COST", 2**17))
