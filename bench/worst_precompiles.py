"""Calls of each precompiled contract, with inputs that take long to compute for their gas.

Where the gas cost is low, the call itself dominates; where it is high, the arithmetic
does. Curve points are multiples of the generators; the scalars are the largest valid
ones.
"""

from __future__ import annotations

import hashlib
from typing import Any

from py_ecc import optimized_bls12_381 as bls

from abi.encoding import word
from bench.worst_loads import STACK, Load, load
from samples import precompile_inputs as inputs

BLS_ORDER = 0x73EDA753299D7D483339D80809A1D80553BDA402FFFE5BFEFFFFFFFF00000001
BLS_PRIME = bls.field_modulus
BN254_ORDER = (
    21888242871839275222246405745257275088548364400416034343698204186575808495617
)
MOST_POINTS = 128
"""Points of a multi-scalar multiplication. More points get no larger discount
(EIP-2537)."""


def _random(size: int) -> bytes:
    return hashlib.shake_256(b"portcullis").digest(size)


def _call(
    name: str, address: int, data: bytes, *, price: int, output: int, calls: str = ""
) -> Load:
    """Return a load that calls a precompile with the same input again and again.

    price: gas of one run of the precompile. output: bytes that it returns.
    One failed call makes its transaction fail: the results are combined by AND.
    """
    start = (len(data) + 31) // 32 * 32
    return load(
        "precompile",
        name,
        "STATICCALL",
        f"PUSH {output} PUSH {start} PUSH {len(data)} PUSH 0 PUSH {address} GAS"
        " STATICCALL AND",
        gas=price + 200,
        # Expand the memory to its final size before the first call.
        setup="CALLDATASIZE PUSH 0 PUSH 0 CALLDATACOPY"
        f" PUSH 0 PUSH {start + output} MSTORE PUSH 1",
        ending="PUSH @succeeded JUMPI INVALID succeeded: STOP",
        data=data,
        prepares=STACK | {"GAS", "AND"},
    )


def _long_input(name: str, address: int, price: int) -> Load:
    """Return a load that gives a precompile a megabyte of zeros, and drops its output."""
    return load(
        "precompile",
        name,
        "STATICCALL",
        f"PUSH0 PUSH0 DUP3 PUSH0 PUSH {address} GAS STATICCALL POP",
        gas=price + 200,
        setup=f"PUSH {2**20} PUSH 0 PUSH {2**20 - 32} MSTORE",
        prepares=STACK | {"GAS"},
    )


# Hashes, copies, signatures, powers

_LONG = _random(8192)
_KZG_COMMITMENT = bytes.fromhex(
    "93b41ed0359b0766221a37821973f40022ba9b5b1e40e57d1795db8cb91455dc"
    "1d64486afa67bb7e4b13b872c56ff0aa"
)
_KZG_INPUT = (
    b"\x01"
    + hashlib.sha256(_KZG_COMMITMENT).digest()[1:]
    + bytes.fromhex(
        "00f3f67a33515271be1dc7d232a1d042a03d2c1986087c5daa17242f9bc99f0d"
        "6afc5900124118d55fb5874c7913475a36e944c4fa4cffe5c521b642ce4b18a3"
    )
    + _KZG_COMMITMENT
    + bytes.fromhex(
        "8e85f5d3d6fb51068f12bedaead3bb65c7bdb4f0cc4be676b3707f4e5b95ade2"
        "1b54f47ba6fd701617f66c3d869dedd2"
    )
)
"""Commitment, point, value and proof of a polynomial with 4096 coefficients, as
computed by `ckzg.compute_kzg_proof` with mainnet's trusted setup."""


def _modexp(name: str, length: int, exponent: bytes, price: int) -> Load:
    numbers = _random(2 * length)
    data = inputs.modexp_input(numbers[:length], exponent, numbers[length:-1] + b"\xff")
    return _call(name, 0x05, data, price=price, output=length)


def _blake2f(rounds: int) -> Load:
    data = rounds.to_bytes(4, "big") + inputs.BLAKE2F_INPUT[4:]
    return _call(f"BLAKE2F, {rounds:,} rounds", 0x09, data, price=rounds, output=64)


_SIMPLE = (
    _call("ecrecover", 0x01, inputs.ECRECOVER_INPUT, price=3000, output=32),
    _call("sha256, no input", 0x02, b"", price=60, output=32),
    _call("sha256, 8 KiB", 0x02, _LONG, price=60 + 12 * 256, output=32),
    _call("ripemd160, no input", 0x03, b"", price=600, output=32),
    _call("ripemd160, 8 KiB", 0x03, _LONG, price=600 + 120 * 256, output=32),
    _call("identity, no input", 0x04, b"", price=15, output=0),
    _call("identity, 8 KiB", 0x04, _LONG, price=15 + 3 * 256, output=8192),
    _modexp("modexp, 32 bytes, 4-byte exponent", 32, b"\xff" * 4, 500),
    _modexp("modexp, 32 bytes, 32-byte exponent", 32, b"\xff" * 32, 16 * 255),
    _modexp("modexp, 256 bytes, 3-byte exponent", 256, b"\1\0\1", 2048 * 16),
    _modexp("modexp, 1024 bytes, 2-byte exponent", 1024, b"\xff\xff", 32_768 * 15),
    _blake2f(12),
    _blake2f(100_000),
    _call("point evaluation", 0x0A, _KZG_INPUT, price=50_000, output=64),
    _call("P256VERIFY", 0x100, inputs.P256_VERIFY_INPUT, price=6900, output=32),
)

# BN254 (EIP-196, EIP-197)

_BN254_PAIR = inputs.CURVE_PAIRING_INPUT[:192]


def _bn254_pairing(pairs: int) -> Load:
    return _call(
        f"BN254 pairing, {pairs} pairs",
        0x08,
        _BN254_PAIR * pairs,
        price=45_000 + 34_000 * pairs,
        output=32,
    )


_BN254 = (
    _call("BN254 add", 0x06, inputs.CURVE_ADD_INPUT, price=150, output=64),
    _long_input("BN254 add, 1 MiB of input", 0x06, price=150),
    _call(
        "BN254 mul",
        0x07,
        inputs.CURVE_MULTIPLY_INPUT[:64] + word(BN254_ORDER - 1),
        price=6000,
        output=64,
    ),
    _bn254_pairing(2),
    _bn254_pairing(16),
)

# BLS12-381 (EIP-2537)


def _field(value: Any) -> bytes:
    return int(value).to_bytes(64, "big")


def _encoded(point: Any) -> bytes:
    """Return a point of G1 or G2 as EIP-2537 encodes it: 64 bytes for each number."""
    return b"".join(
        b"".join(map(_field, getattr(coordinate, "coeffs", (coordinate,))))
        for coordinate in bls.normalize(point)
    )


def _points(generator: Any) -> tuple[bytes, ...]:
    """Return the generator's multiples from 1 on."""
    points, point = [], generator
    for _ in range(MOST_POINTS):
        points.append(_encoded(point))
        point = bls.add(point, generator)
    return tuple(points)


_G1, _G2 = _points(bls.G1), _points(bls.G2)


def _msm(address: int, points: tuple[bytes, ...], price: int) -> Load:
    count, output = len(points), len(points[0])
    data = b"".join(
        point + word(BLS_ORDER - 1 - i) for i, point in enumerate(points, start=1)
    )
    name = f"BLS12-381 G{output // 128} MSM, {count} points"
    return _call(name, address, data, price=price, output=output)


def _bls_pairing(pairs: int) -> Load:
    points = zip(_G1[:pairs], _G2[:pairs], strict=True)
    return _call(
        f"BLS12-381 pairing, {pairs} pairs",
        0x0F,
        b"".join(one + other for one, other in points),
        price=37_700 + 32_600 * pairs,
        output=32,
    )


_FIELD_ELEMENT = _field(BLS_PRIME - 2)
_BLS = (
    _call("BLS12-381 G1 add", 0x0B, _G1[1] + _G1[2], price=375, output=128),
    _msm(0x0C, _G1[1:2], 12_000),
    _msm(0x0C, _G1, 797_184),
    _call("BLS12-381 G2 add", 0x0D, _G2[1] + _G2[2], price=600, output=256),
    _msm(0x0E, _G2[1:2], 22_500),
    _msm(0x0E, _G2, 1_509_120),
    _bls_pairing(2),
    _bls_pairing(16),
    _call("BLS12-381 map to G1", 0x10, _FIELD_ELEMENT, price=5500, output=128),
    _call("BLS12-381 map to G2", 0x11, _FIELD_ELEMENT * 2, price=23_800, output=256),
)

PRECOMPILE_LOADS: tuple[Load, ...] = (*_SIMPLE, *_BN254, *_BLS)
