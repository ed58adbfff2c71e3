"""Codes and tokens; the database stores only their digests."""

from __future__ import annotations

import secrets
from base64 import urlsafe_b64encode
from hashlib import sha256

from django.utils.crypto import salted_hmac


def new_token() -> str:
    """Return 256 random bits, in 43 characters of base64url."""
    return secrets.token_urlsafe(32)


def successor(secret: str) -> str:
    """Return the secret that replaces another one, in the same form.

    It is an HMAC with the project's SECRET_KEY, so that only the service can derive it.
    """
    key = salted_hmac("wallets.credentials.successor", secret, algorithm="sha256")
    return urlsafe_b64encode(key.digest()).rstrip(b"=").decode()


def digest(secret: str) -> str:
    """Return a secret's SHA-256 in hex; any string is accepted."""
    return sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
