"""Valid inputs of the precompiled contracts, for calls in the sample chain."""

from __future__ import annotations

from hashlib import sha256

from abi.encoding import word
from evm.signatures import keccak, sign

_SIGNED = keccak(b"signed")
_PARITY, _R, _S = sign(_SIGNED, keccak(b"a key for ecrecover"))

ECRECOVER_INPUT = _SIGNED + word(27 + _PARITY) + word(_R) + word(_S)


def modexp_input(base: bytes, exponent: bytes, modulus: bytes) -> bytes:
    """Return MODEXP's input: the three lengths, then the three numbers (EIP-198)."""
    lengths = b"".join(word(len(part)) for part in (base, exponent, modulus))
    return lengths + base + exponent + modulus


MODEXP_INPUT = modexp_input(b"\x03", word(2**255 + 1), word(2**256 - 189))

_ALT_BN128_PRIME = (
    21888242871839275222246405745257275088696311157297823662689037894645226208583
)
_G1 = word(1) + word(2)
_MINUS_G1 = word(1) + word(_ALT_BN128_PRIME - 2)
_G2 = b"".join(
    map(
        word,
        (
            11559732032986387107991004021392285783925812861821192530917403151452391805634,
            10857046999023057135944570762232829481370756359578518086990519993285655852781,
            4082367875863433681332203403145435568316851327593401208105741076214120093531,
            8495653923123431417604973247489272438418190587263600148770280649306958101930,
        ),
    )
)
"""Generator of alt_bn128's group G2 (EIP-197). Imaginary parts precede real parts."""

CURVE_ADD_INPUT = _G1 + _G1
CURVE_MULTIPLY_INPUT = _G1 + word(9)
CURVE_PAIRING_INPUT = _G1 + _G2 + _MINUS_G1 + _G2
"""Two pairings whose product is 1, so the output is 1."""

BLAKE2F_INPUT = (
    (12).to_bytes(4, "big")
    + bytes.fromhex(
        "48c9bdf267e6096a3ba7ca8485ae67bb2bf894fe72f36e3cf1361d5f3af54fa5"
        "d182e6ad7f520e511f6c3e2b8c68059b6bbd41fbabd9831f79217e1319cde05b"
    )
    + b"abc".ljust(128, b"\0")
    + (3).to_bytes(16, "little")
    + b"\x01"
)
"""Test vector 5 of https://eips.ethereum.org/EIPS/eip-152: BLAKE2b of "abc"."""

_INFINITY_COMMITMENT = b"\xc0" + bytes(47)
POINT_EVALUATION_INPUT = (
    b"\x01"
    + sha256(_INFINITY_COMMITMENT).digest()[1:]
    + word(5)
    + word(0)
    + _INFINITY_COMMITMENT * 2
)
"""A proof that the zero polynomial is zero at 5. Commitment and proof are the point at
infinity."""

_BLS_G1_X = bytes.fromhex(
    "17f1d3a73197d7942695638c4fa9ac0fc3688c4f9774b905a14e3a3f171bac586c55e83ff97a1aef"
    "fb3af00adb22c6bb"
)
_BLS_G1_Y = bytes.fromhex(
    "08b3f481e3aaa0f1a09e30ed741d8ae4fcf5e095d5d00af600db18cb2c04b3edd03cc744a2888ae4"
    "0caa232946c5e7e1"
)
BLS_G1_ADD_INPUT = (bytes(16) + _BLS_G1_X + bytes(16) + _BLS_G1_Y) * 2
"""The sum of BLS12-381's G1 generator and itself (EIP-2537)."""

P256_VERIFY_INPUT = bytes.fromhex(
    "74e19dcd5ceecfb9f1579fda3c43a847f3fad01c8606d85caa17242e9bc99f0e"
    "0f3aff59d6c7c0d19a054fab4c95029d5d749f5cbd8e61e889b228e780c13c94"
    "96469e86108dbea7e8c537de82e6c2bf4677b6fe354f4c5014b8922cc4d32135"
    "d360332fad9bc83afaff4a740de8a516bf1b8fb3fde360ff1d03979c1f943ee2"
    "e8a66007fd276b0271265c6db092c4a0c5eb8c45fdc436502c8a095f5d5745f2"
)
"""A valid signature (EIP-7951): SHA-256 of "portcullis", r, s, and the public key's x
and y."""
