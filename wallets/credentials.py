"""Secrets that others carry: codes and tokens, of which only digests are kept."""

from __future__ import annotations

import secrets
from hashlib import sha256


def new_token() -> str:
    """Return 256 random bits, in 43 characters of base64url."""
    return secrets.token_urlsafe(32)


def digest(secret: str) -> str:
    """Return a secret's SHA-256 in hex; of whatever somebody claims to be one, too."""
    return sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
