"""Settings of keys and accounts. Their defaults are declared in config/variables/."""

from __future__ import annotations

from django.conf import settings


def public_url() -> str:
    """Return the service's address for browsers, or "" if it is not configured.

    PUBLIC_URL, such as https://rpc.example.org, without a final slash. Links in emails
    begin with it and never with the request's host, because an attacker could request a
    mail to another user with a host of their own.
    """
    return settings.PUBLIC_URL.rstrip("/")


def signup_is_open() -> bool:
    """Return whether anyone can sign up as a customer.

    KEYS_SIGNUP. Otherwise staff create the accounts, and customers set their first
    password like a forgotten one.
    """
    return settings.KEYS_SIGNUP


def keys_per_customer() -> int:
    """Return how many keys customers can create. Keys issued by staff do not count.

    KEYS_PER_CUSTOMER. Each key has the whole of its plan, so the number of keys limits a
    customer's total. 0: staff create all keys, and customers reveal and roll them.
    """
    return settings.KEYS_PER_CUSTOMER
