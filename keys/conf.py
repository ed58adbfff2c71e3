"""Settings of keys and accounts, with their defaults."""

from __future__ import annotations

from django.conf import settings


def public_url() -> str:
    """Return where browsers reach the service, such as https://rpc.example.org; "".

    PUBLIC_URL. The links in mails begin with it, never with what a request says of
    its host: whoever asks for a mail to somebody else could have them lead to himself.
    """
    return str(getattr(settings, "PUBLIC_URL", "")).rstrip("/")


def signup_is_open() -> bool:
    """Return whether anybody may make himself a customer.

    KEYS_SIGNUP. Without it staff make the accounts, and customers set their first
    password by asking for a new one.
    """
    return bool(getattr(settings, "KEYS_SIGNUP", True))


def keys_per_customer() -> int:
    """Return how many keys a customer may make; staff may make him more.

    KEYS_PER_CUSTOMER. Each key has the whole of its plan, so that the number of keys
    is what bounds a customer. 0: staff make all keys, customers reveal and roll them.
    """
    return int(getattr(settings, "KEYS_PER_CUSTOMER", 5))
