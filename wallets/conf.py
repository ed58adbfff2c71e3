"""Settings of the wallet. Their defaults are declared in config/variables/."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings


def request_lifetime() -> timedelta:
    """Return how long a request stays pending before it expires.

    WALLETS_REQUEST_SECONDS; the default is the lifetime of a WalletConnect proposal.
    """
    return timedelta(seconds=settings.WALLETS_REQUEST_SECONDS)


def max_pending_requests() -> int:
    """Return how many requests of one user can be pending, over all dapps.

    WALLETS_MAX_PENDING; users do not read a longer list with care.
    """
    return settings.WALLETS_MAX_PENDING


def token_lifetime() -> timedelta:
    """Return how long a connection token stays valid after its last use.

    WALLETS_TOKEN_DAYS.
    """
    return timedelta(days=settings.WALLETS_TOKEN_DAYS)


def history() -> timedelta:
    """Return how long decided requests and log lines are kept.

    WALLETS_HISTORY_DAYS.
    """
    return timedelta(days=settings.WALLETS_HISTORY_DAYS)


def echo_to_requester() -> bool:
    """Return whether the socket whose call changed a session receives the event, too.

    WALLETS_ECHO_TO_REQUESTER; MetaMask sends the event before the answer. Clients whose
    call timed out during the user's decision learn of it only by the event. Simple
    clients mistake the event for the answer.
    """
    return settings.WALLETS_ECHO_TO_REQUESTER


def scrypt_cost() -> int:
    """Return scrypt's cost N for new keystores, a power of two.

    WALLETS_SCRYPT_COST; 2**17, which takes 128 MiB and about half a second, is OWASP's
    minimum for passwords. Only tests use another value.
    """
    return int(getattr(settings, "WALLETS_SCRYPT_COST", 2**17))
