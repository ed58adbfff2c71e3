"""The format of an API key: `nk_`, 30 random characters, and a checksum of 6.

Tokens of the management API have the same format with another prefix.

A key consists of base62 characters and `_`, so that a double click selects it. Prefix
and checksum allow scanners to find leaked keys offline. 30 base62 characters contain
178 bits, so a digest without salt or stretching is sufficient for storage. After
https://github.blog/2021-04-05-behind-githubs-new-authentication-token-formats/
"""

from __future__ import annotations

import hmac
import re
import secrets
from hashlib import sha256
from string import ascii_lowercase, ascii_uppercase, digits
from zlib import crc32

PREFIX = "nk_"
TOKEN_PREFIX = "mt_"
ALPHABET = digits + ascii_uppercase + ascii_lowercase
_RANDOM_LENGTH = 30
_CHECKSUM_LENGTH = 6
_SHAPE = re.compile(r"([a-z]{2}_)([0-9A-Za-z]{30})([0-9A-Za-z]{6})")


def make_key(prefix: str = PREFIX) -> str:
    """Return a new random key, or a token with another prefix."""
    random = "".join(secrets.choice(ALPHABET) for _ in range(_RANDOM_LENGTH))
    return prefix + random + checksum(random)


def derive_key(secret: bytes, purpose: bytes) -> str:
    """Derive a key from a secret. The result is the same for the same purpose.

    The service's own keys are derived, and therefore need not be stored.
    """
    number = int.from_bytes(hmac.digest(secret, purpose, "sha256"))
    characters = []
    for _ in range(_RANDOM_LENGTH):
        number, rest = divmod(number, len(ALPHABET))
        characters.append(ALPHABET[rest])
    random = "".join(characters)
    return PREFIX + random + checksum(random)


def is_well_formed(key: str, prefix: str = PREFIX) -> bool:
    """Return whether a text has a key's shape and the right checksum."""
    match = _SHAPE.fullmatch(key)
    return match is not None and match[1] == prefix and checksum(match[2]) == match[3]


def digest(key: str) -> str:
    """Return the stored form of a key: its SHA-256 in hexadecimal."""
    return sha256(key.encode()).hexdigest()


def hint(key: str) -> str:
    """Return the part of a key that is not confidential: 7 first, 4 last characters."""
    return f"{key[:7]}…{key[-4:]}"


def checksum(random: str) -> str:
    """Return the CRC-32 of the random part in base62, most significant first."""
    number = crc32(random.encode())
    characters = []
    for _ in range(_CHECKSUM_LENGTH):
        number, rest = divmod(number, len(ALPHABET))
        characters.append(ALPHABET[rest])
    return "".join(reversed(characters))
