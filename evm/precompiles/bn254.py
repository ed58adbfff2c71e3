"""The curve alt_bn128, also called BN254 (EIP-196, EIP-197), with arkworks.

Coordinates are checked here, so that the library only sees points of the curve. Points
are added here as well: the library multiplies by the group's order whenever it accepts
coordinates, which takes a hundred times as long as an addition.
"""

from __future__ import annotations

from typing import Any

from gmpy2 import invert, mpz
from zksnake.ecc import EllipticCurve

from evm.precompiles.contract import Data, PrecompileError, Price, prefix

FIELD = 0x30644E72E131A029B85045B68181585D97816A916871CA8D3C208C16D87CFD47
"""The prime p: coordinates are lower."""

_CURVE = EllipticCurve("BN254")
_G2 = _CURVE.curve.PointG2
_ONE = _CURVE.multi_pairing([], [])
_MODULUS = mpz(FIELD)

_TWIST_B = (27 * pow(82, -1, FIELD) % FIELD, -3 * pow(82, -1, FIELD) % FIELD)
"""3 / (9 + i), real and imaginary part: points of G2 satisfy y² = x³ + it."""

_WORD = 32
_POINT = 2 * _WORD
_PAIR = 6 * _WORD

Point = tuple[int, int] | None
"""Coordinates on the curve, or None for the point at infinity."""
Complex = tuple[int, int]
"""Real and imaginary part of an element of the quadratic extension field, i² = -1."""


def pairing_gas(base: int, each: int) -> Price:
    """Return the price of a pairing: a base, and more for each pair of points."""
    return lambda data: base + each * (len(data) // _PAIR)


def add(data: Data) -> bytes:
    """Return the sum of two points of G1: x and y, 32 bytes each.

    data: the two points, padded with zeros.
    Raises: PrecompileError if a point is not on the curve.
    """
    points = prefix(data, 2 * _POINT)
    first, second = _read_g1(points[:_POINT]), _read_g1(points[_POINT:])
    return _write(_sum(first, second))


def multiply(data: Data) -> bytes:
    """Return a point of G1, multiplied by a number: x and y, 32 bytes each.

    data: the point and the number, padded with zeros.
    Raises: PrecompileError if the point is not on the curve.
    """
    data = prefix(data, _POINT + _WORD)
    point = _read_g1(data[:_POINT])
    if point is None:
        return bytes(_POINT)
    product = _CURVE(*point) * int.from_bytes(data[_POINT:], "big")
    return bytes(_POINT) if product.is_zero() else _write((product.x, product.y))


def pairing(data: Data) -> bytes:
    """Return the number 1 if the product of the pairings is one, otherwise 0.

    Raises: PrecompileError for a wrong length, or a point outside its curve or subgroup.
    """
    if len(data) % _PAIR:
        raise PrecompileError("bad elliptic curve pairing size")
    data = bytes(data)
    firsts, seconds = [], []
    for start in range(0, len(data), _PAIR):
        first = _read_g1(data[start : start + _POINT])
        second = _read_g2(data[start + _POINT : start + _PAIR])
        if first is not None and second is not None:
            firsts.append(_CURVE(*first))
            seconds.append(second)
    is_one = _CURVE.multi_pairing(firsts, seconds) == _ONE
    return int(is_one).to_bytes(_WORD, "big")


def _read_numbers(data: bytes) -> list[int]:
    numbers = []
    for start in range(0, len(data), _WORD):
        found = int.from_bytes(data[start : start + _WORD], "big")
        if found >= FIELD:
            raise PrecompileError("invalid fp.Element encoding")
        numbers.append(found)
    return numbers


def _read_g1(data: bytes) -> Point:
    """Return a point of G1, which is the whole curve. Raises: PrecompileError."""
    x, y = _read_numbers(data)
    if not x and not y:
        return None
    if (y * y - x * x * x - 3) % FIELD:
        raise PrecompileError("point is not on curve")
    return x, y


def _read_g2(data: bytes) -> Any:
    """Return the library's point of G2, or None at infinity. Raises: PrecompileError.

    The library takes x and the larger or smaller y, and checks that the point is in the
    group.
    """
    x_imaginary, x_real, y_imaginary, y_real = _read_numbers(data)
    x, y = (x_real, x_imaginary), (y_real, y_imaginary)
    if x == y == (0, 0):
        return None
    x_cubed = _times(_times(x, x), x)
    y_squared = _times(y, y)
    if any((y_squared[k] - x_cubed[k] - _TWIST_B[k]) % FIELD for k in (0, 1)):
        raise PrecompileError("point is not on curve")
    is_larger = (y_imaginary or y_real) > FIELD // 2
    encoded = x_real | (x_imaginary | is_larger << 255) << 256
    try:
        return _G2.from_bytes(encoded.to_bytes(_POINT, "little"))
    except ValueError as error:
        raise PrecompileError("point is not in correct subgroup") from error


def _times(a: Complex, b: Complex) -> Complex:
    return a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]


def _sum(first: Point, second: Point) -> Point:
    """Return the sum of two points of G1, by the chord and tangent rule."""
    if first is None or second is None:
        return second if first is None else first
    (x1, y1), (x2, y2) = first, second
    if x1 != x2:
        slope = (y2 - y1) * invert(x2 - x1, _MODULUS) % FIELD
    elif y1 == y2:  # y is never 0, because the group's order is odd.
        slope = 3 * x1 * x1 * invert(2 * y1, _MODULUS) % FIELD
    else:
        return None
    x = (slope * slope - x1 - x2) % FIELD
    return int(x), int((slope * (x1 - x) - y1) % FIELD)


def _write(point: Point) -> bytes:
    x, y = point or (0, 0)
    return x.to_bytes(_WORD, "big") + y.to_bytes(_WORD, "big")
