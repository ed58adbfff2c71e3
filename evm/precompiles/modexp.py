"""Modular exponentiation (EIP-198), with GMP.

Python's own `pow` reaches 2 Mgas/s for an 8-byte modulus and a long exponent at Berlin's
prices, GMP 20.
"""

from __future__ import annotations

import gmpy2

from evm.precompiles.contract import Data, PrecompileError, number

MAX_LENGTH = 1024
"""Bytes of each number from Osaka on: https://eips.ethereum.org/EIPS/eip-7823."""


def _lengths(data: Data) -> tuple[int, int, int]:
    """Return the lengths in bytes of base, exponent and modulus."""
    return number(data, 0, 32), number(data, 32, 32), number(data, 64, 32)


def _iterations(data: Data, multiplier: int) -> int:
    """Return the number of iterations that the price assumes, from the exponent.

    multiplier: iterations for each byte of the exponent after the first 32.
    """
    base_length, exponent_length, _ = _lengths(data)
    head = number(data, 96 + base_length, min(exponent_length, 32))
    tail = max(exponent_length - 32, 0)
    return max(multiplier * tail + max(head.bit_length() - 1, 0), 1)


def byzantium_gas(data: Data) -> int:
    """Return the gas of EIP-198."""
    base_length, _, modulus_length = _lengths(data)
    x = max(base_length, modulus_length)
    if x <= 64:
        complexity = x**2
    elif x <= 1024:
        complexity = x**2 // 4 + 96 * x - 3072
    else:
        complexity = x**2 // 16 + 480 * x - 199_680
    return complexity * _iterations(data, 8) // 20


def berlin_gas(data: Data) -> int:
    """Return the gas of EIP-2565."""
    base_length, _, modulus_length = _lengths(data)
    words = (max(base_length, modulus_length) + 7) // 8
    return max(200, words**2 * _iterations(data, 8) // 3)


def osaka_gas(data: Data) -> int:
    """Return the gas of EIP-7883."""
    base_length, _, modulus_length = _lengths(data)
    longest = max(base_length, modulus_length)
    words = (longest + 7) // 8
    complexity = 2 * words**2 if longest > 32 else 16
    return max(500, complexity * _iterations(data, 16))


def modexp(data: Data) -> bytes:
    """Return base ** exponent % modulus in the length of the modulus."""
    base_length, exponent_length, modulus_length = _lengths(data)
    if base_length == 0 and modulus_length == 0:
        # The price is the minimum, regardless of the exponent's length.
        return b""
    exponent_start = 96 + base_length
    modulus = number(data, exponent_start + exponent_length, modulus_length)
    if not modulus:
        return bytes(modulus_length)
    base = number(data, 96, base_length)
    exponent = number(data, exponent_start, exponent_length)
    result = int(gmpy2.powmod(base, exponent, modulus))
    return result.to_bytes(modulus_length, "big")


def limited_modexp(data: Data) -> bytes:
    """Return the result of `modexp`, with limited lengths (EIP-7823).

    Raises: PrecompileError if a number is too long.
    """
    if max(_lengths(data)) > MAX_LENGTH:
        raise PrecompileError(
            "one or more of base/exponent/modulus length exceeded 1024 bytes"
        )
    return modexp(data)
