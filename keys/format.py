"""The form of an API key: `nk_`, 30 random characters, 6 of checksum.

Tokens of the management API are made alike, with another prefix.

Only base62 characters and `_`, so that a double click selects a key, and with a prefix
and a checksum, so that scanners find leaked ones without asking us. 30 characters of
base62 hold 178 bits: a digest without salt or stretching is all the protection that a
stored key needs. After https://github.blog/2021-04-05-behind-githubs-new-authentication-token-formats/
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
    """Return a new random key, or what is made alike and has another prefix."""
    random = "".join(secrets.choice(ALPHABET) for _ in range(_RANDOM_LENGTH))
    return prefix + random + _checksum(random)


def derive_key(secret: bytes, purpose: bytes) -> str:
    """Return the key that follows from a secret, always the same for one purpose.

    For keys that the service itself uses, and would otherwise have to keep somewhere.
    """
    number = int.from_bytes(hmac.digest(secret, purpose, "sha256"))
    characters = []
    for _ in range(_RANDOM_LENGTH):
        number, rest = divmod(number, len(ALPHABET))
        characters.append(ALPHABET[rest])
    random = "".join(characters)
    return PREFIX + random + _checksum(random)


def is_well_formed(key: str, prefix: str = PREFIX) -> bool:
    """Return whether a text has a key's shape and the right checksum."""
    match = _SHAPE.fullmatch(key)
    return match is not None and match[1] == prefix and _checksum(match[2]) == match[3]


def digest(key: str) -> str:
    """Return what is stored of a key: its SHA-256 in hexadecimal."""
    return sha256(key.encode()).hexdigest()


def hint(key: str) -> str:
    """Return what may be shown of a key: its first seven and last four characters."""
    return f"{key[:7]}…{key[-4:]}"


def _checksum(random: str) -> str:
    """Return the CRC-32 of the random part in base62, most significant first."""
    number = crc32(random.encode())
    characters = []
    for _ in range(_CHECKSUM_LENGTH):
        number, rest = divmod(number, len(ALPHABET))
        characters.append(ALPHABET[rest])
    return "".join(reversed(characters))
