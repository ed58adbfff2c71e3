"""Random and edge-case inputs of the precompiled contracts.

`INPUTS` maps a contract's name to a generator of its inputs. Most inputs are valid, the
others have one fault: a coordinate that is not lower than the field's prime, a point off
the curve or outside the group, a wrong length. The same `random.Random` yields the same
inputs.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from py_arkworks_bls12381 import G1Point, G2Point
from zksnake.ecc import EllipticCurve

from evm import kzg
from evm.precompiles import bn254
from evm.signatures import CURVE_ORDER, sign

BN_FIELD, BLS_FIELD = bn254.FIELD, kzg.BASE_FIELD
BN_ORDER = 0x30644E72E131A029B85045B68181585D2833E84879B9709143E1F593F0000001
BLS_ORDER = 0x73EDA753299D7D483339D80809A1D80553BDA402FFFE5BFEFFFFFFFF00000001

Choose = random.Random


# Square roots, to find points outside the groups. Both primes are 3 modulo 4.


def _root(square: int, prime: int) -> int | None:
    found = pow(square, (prime + 1) // 4, prime)
    return found if found * found % prime == square % prime else None


def _complex_root(square: tuple[int, int], prime: int) -> tuple[int, int] | None:
    """Return the root of a + bi with i² = -1, by the norm."""
    a, b = square
    norm = _root(a * a + b * b, prime)
    if norm is None:
        return None
    half = pow(2, -1, prime)
    for root in (norm, -norm):
        real = _root((a + root) * half % prime, prime)
        if real:
            return real, b * pow(2 * real, -1, prime) % prime
    return None


@dataclass(frozen=True)
class Group:
    """Points of a group as the contracts' input has them.

    inside: encoded points of the group. outside: points of the curve, not of the group.
    width: bytes of a coordinate. prime: coordinates are lower.
    """

    inside: Sequence[bytes]
    outside: Sequence[bytes]
    width: int
    prime: int

    def point(self, choose: Choose) -> bytes:
        """Return a point, mostly of the group."""
        if choose.random() < 0.88:
            return self.good(choose)
        return self.bad(choose)

    def good(self, choose: Choose) -> bytes:
        """Return a point of the group, sometimes infinity."""
        if choose.random() < 0.08:
            return bytes(len(self.inside[0]))
        return choose.choice(self.inside)

    def bad(self, choose: Choose) -> bytes:
        """Return a point outside the group, off the curve, or no point at all."""
        kind = choose.randrange(6)
        if kind == 0 and self.outside:
            return choose.choice(self.outside)
        point = bytearray(choose.choice(self.inside))
        start = choose.randrange(len(point) // self.width) * self.width
        end = start + self.width
        value = int.from_bytes(point[start:end], "big")
        wrong = {
            1: value + self.prime,
            2: self.prime,
            3: 2 ** (8 * self.width) - 1,
            4: choose.randrange(self.prime),
            5: 2**384 + value,
        }.get(kind, value + 1)
        point[start:end] = (wrong % 2 ** (8 * self.width)).to_bytes(self.width, "big")
        return bytes(point)


def _words(*numbers: int) -> bytes:
    return b"".join(number.to_bytes(32, "big") for number in numbers)


def _elements(raw: bytes) -> bytes:
    parts = (raw[start : start + 48] for start in range(0, len(raw), 48))
    return b"".join(bytes(16) + part for part in parts)


SIZE = 64
"""Number of points of each group from which inputs are chosen."""


@cache
def bn_g1() -> Group:
    curve = EllipticCurve("BN254")
    points = [curve.G1() * pow(3, 17 * n * n, BN_ORDER) for n in range(SIZE)]
    inside = [
        _words(point.x, side * point.y % BN_FIELD)
        for point in points
        for side in (1, -1)
    ]
    return Group(inside, [], 32, BN_FIELD)


@cache
def bn_g2() -> Group:
    curve = EllipticCurve("BN254")
    points = [curve.G2() * pow(5, 13 * n * n, BN_ORDER) for n in range(SIZE)]
    inside = [_words(*reversed(point.x), *reversed(point.y)) for point in points]
    minus_b = pow(82, -1, BN_FIELD)
    outside = []
    for n in range(40):
        x = (n, n * n + 1)
        root = _complex_root(
            _cubic(x, (27 * minus_b, -3 * minus_b), BN_FIELD), BN_FIELD
        )
        if root is not None:
            outside.append(_words(x[1], x[0], root[1], root[0]))
    return Group(inside, outside, 32, BN_FIELD)


def _cubic(x: tuple[int, int], b: tuple[int, int], prime: int) -> tuple[int, int]:
    """Return x³ + b."""
    c, d = x
    return (c**3 - 3 * c * d * d + b[0]) % prime, (3 * c * c * d - d**3 + b[1]) % prime


@cache
def bls_g1() -> Group:
    point, inside = G1Point(), []
    for _ in range(SIZE):
        point = point + point + G1Point()
        inside += [_elements(p.to_xy_bytes_be()) for p in (point, -point)]
    outside = []
    for x in range(60):  # With x = 0: a point of order 3.
        y = _root(x**3 + 4, BLS_FIELD)
        if y is not None:
            outside.append(_elements(x.to_bytes(48, "big") + y.to_bytes(48, "big")))
    return Group(inside, outside, 64, BLS_FIELD)


@cache
def bls_g2() -> Group:
    point, inside = G2Point(), []
    for _ in range(SIZE):
        point = point + point + G2Point()
        inside += [_elements(p.to_xy_bytes_be()) for p in (point, -point)]
    outside = []
    for n in range(60):
        x = (n, n + 1)
        y = _complex_root(_cubic(x, (4, 4), BLS_FIELD), BLS_FIELD)
        if y is not None:
            raw = b"".join(part.to_bytes(48, "big") for part in (*x, *y))
            outside.append(_elements(raw))
    return Group(inside, outside, 64, BLS_FIELD)


def _scalar(choose: Choose, order: int) -> bytes:
    edges = (0, 1, 2, order - 1, order, order + 1, 2**256 - 1, 2**128)
    if choose.random() < 0.2:
        return choose.choice(edges).to_bytes(32, "big")
    return choose.randbytes(32)


def _cut(choose: Choose, data: bytes) -> bytes:
    """Return the input, sometimes shorter or longer than it should be."""
    kind = choose.random()
    if kind < 0.03:
        return data[: choose.randrange(len(data) + 1)]
    if kind < 0.05:
        return data + choose.randbytes(choose.choice((1, 32, 64)))
    return data


def _added(group: Callable[[], Group]) -> Callable[[Choose], bytes]:
    def data(choose: Choose) -> bytes:
        first = group().point(choose)
        kind = choose.random()
        if kind < 0.1:
            second = first
        elif kind < 0.2 and group().outside:
            second = choose.choice(group().outside)
        else:
            second = group().point(choose)
        return _cut(choose, first + second)

    return data


def bn_multiply(choose: Choose) -> bytes:
    return _cut(choose, bn_g1().point(choose) + _scalar(choose, BN_ORDER))


def _msm(group: Callable[[], Group], most: int) -> Callable[[Choose], bytes]:
    def data(choose: Choose) -> bytes:
        pairs = choose.choice((1, 1, 1, 2, most))
        parts = (
            group().point(choose) + _scalar(choose, BLS_ORDER) for _ in range(pairs)
        )
        return _cut(choose, b"".join(parts))

    return data


def _pairing(
    first: Callable[[], Group], second: Callable[[], Group]
) -> Callable[[Choose], bytes]:
    def data(choose: Choose) -> bytes:
        parts = []
        for _ in range(choose.choice((0, 1, 1, 2))):
            parts.append(first().point(choose) + second().point(choose))
        if choose.random() < 0.4:  # A point and its negative cancel each other.
            place = 2 * choose.randrange(SIZE)
            other = second().good(choose)
            parts += [point + other for point in first().inside[place : place + 2]]
        return _cut(choose, b"".join(parts))

    return data


def _mapped(elements: int) -> Callable[[Choose], bytes]:
    def data(choose: Choose) -> bytes:
        parts = []
        for _ in range(elements):
            value = choose.randrange(BLS_FIELD)
            if choose.random() < 0.1:
                edges = (
                    0,
                    1,
                    BLS_FIELD - 1,
                    BLS_FIELD,
                    BLS_FIELD + 1,
                    2**384 - 1,
                    2**384,
                )
                value = choose.choice(edges)
            parts.append(value.to_bytes(64, "big"))
        return _cut(choose, b"".join(parts))

    return data


def ecrecover(choose: Choose) -> bytes:
    digest, key = choose.randbytes(32), choose.randrange(1, CURVE_ORDER)
    parity, r, s = sign(digest, key.to_bytes(32, "big"))
    v = 27 + parity
    match choose.randrange(10):
        case 0:
            v = choose.choice((0, 1, 26, 27, 28, 29, 27 + 2**8, 28 + 2**248))
        case 1:
            r = choose.choice(
                (0, 1, 5, r + 1, CURVE_ORDER - 1, CURVE_ORDER, 2**256 - 1)
            )
        case 2:
            s = choose.choice((0, 1, CURVE_ORDER - s, CURVE_ORDER, 2**256 - 1))
        case 3:
            digest = choose.choice((bytes(32), b"\xff" * 32, choose.randbytes(32)))
    return _cut(choose, digest + _words(v, r, s))


def blake2f(choose: Choose) -> bytes:
    rounds = choose.choice((0, 1, 9, 10, 11, 12, choose.randrange(60)))
    flag = choose.choice(b"\x00\x00\x00\x00\x01\x01\x01\x01\x01\x02\xff")
    data = rounds.to_bytes(4, "big") + choose.randbytes(208) + bytes([flag])
    return _cut(choose, data)


def modexp(choose: Choose) -> bytes:
    lengths = [choose.choice((0, 1, 2, 8, 31, 32, 33, 48, 64)) for _ in range(3)]
    parts = [
        choose.choice(
            (choose.randbytes(n), bytes(n), b"\xff" * n, bytes(n)[1:] + b"\x01"[:n])
        )
        for n in lengths
    ]
    data = b"".join(n.to_bytes(32, "big") for n in lengths) + b"".join(parts)
    return _cut(choose, data)


INPUTS: dict[str, Callable[[Choose], bytes]] = {
    "ecrecover": ecrecover,
    "modexp": modexp,
    "bn254_add": _added(bn_g1),
    "bn254_multiply": bn_multiply,
    "bn254_pairing": _pairing(bn_g1, bn_g2),
    "blake2f": blake2f,
    "bls_g1_add": _added(bls_g1),
    "bls_g1_msm": _msm(bls_g1, 5),
    "bls_g2_add": _added(bls_g2),
    "bls_g2_msm": _msm(bls_g2, 3),
    "bls_pairing": _pairing(bls_g1, bls_g2),
    "bls_map_to_g1": _mapped(1),
    "bls_map_to_g2": _mapped(2),
}
