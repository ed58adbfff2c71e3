"""Addresses as people read them: `0x` and 40 digits, whose case is a checksum.

Source: https://eips.ethereum.org/EIPS/eip-55
"""

from __future__ import annotations

import re
from functools import lru_cache

from sha3 import keccak_256

_ADDRESS = re.compile(r"(?:0[xX])?([0-9a-fA-F]{40})")


class WrongChecksum(ValueError):
    """Raised for an address in mixed case whose checksum is wrong: a typing mistake."""


@lru_cache(maxsize=4096)
def checksummed(address: bytes) -> str:
    """Return an address of 20 bytes with its checksum: `0x5aAeb605…`."""
    digits = address.hex()
    digest = keccak_256(digits.encode()).hexdigest()
    return "0x" + "".join(
        digit.upper() if int(guide, 16) >= 8 else digit
        for digit, guide in zip(digits, digest, strict=False)
    )


def with_checksum(text: str) -> str:
    """Return a text that is an address (`0x…`) with its checksum, others unchanged."""
    if not text.startswith("0x") or _ADDRESS.fullmatch(text) is None:
        return text
    return checksummed(bytes.fromhex(text[2:]))


def parse_address(text: str) -> bytes:
    """Return the 20 bytes of an address. The prefix `0x` may be missing.

    Raises: WrongChecksum, and ValueError for a text that is no address.
    """
    found = _ADDRESS.fullmatch(text)
    if found is None:
        raise ValueError("not an address of 40 hexadecimal digits")
    digits = found[1]
    address = bytes.fromhex(digits)
    has_checksum = digits not in (digits.lower(), digits.upper())
    if has_checksum and checksummed(address) != f"0x{digits}":
        raise WrongChecksum("The checksum of this address is wrong. Check each digit.")
    return address
