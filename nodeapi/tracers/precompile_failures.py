"""Why a precompiled contract failed, in geth's words.

py-evm mostly says no more than that its input was wrong, and sometimes says so before
it asks for the gas, which geth always takes first. So the input is looked at again.
Sources: go-ethereum, core/vm/contracts.go and crypto/bn256; go-eth-kzg
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Any

from eth.exceptions import OutOfGas, VMError
from eth.precompiles.bls12_381.constants import (
    BLS12_G1_MSM_GAS,
    BLS12_G2_MSM_GAS,
    G1_MSM_DISCOUNTS,
    G2_MSM_DISCOUNTS,
)

from nodeapi.evm.precompiles import BLS_MODULUS, osaka_modexp_gas

OUT_OF_GAS = "out of gas"
INVALID_LENGTH = "invalid input length"

BN_FIELD = 0x30644E72E131A029B85045B68181585D97816A916871CA8D3C208C16D87CFD47
"""The prime of alt_bn128: https://eips.ethereum.org/EIPS/eip-196."""
BLS_FIELD = int(
    "1a0111ea397fe69a4b1ba7b6434bacd764774b84f38512bf6730d2a0f6b0f624"
    "1eabfffeb153ffffb9feffffffffaaab",
    16,
)
"""The prime of BLS12-381: https://eips.ethereum.org/EIPS/eip-2537."""

Reason = Callable[[Any, bytes, VMError], str]
"""(frame, input, py-evm's error) → why it failed."""


def precompile_failure(frame: Any, error: VMError) -> str:
    """Return why the precompiled contract that a frame calls failed."""
    if isinstance(error, OutOfGas):
        return OUT_OF_GAS
    number = int.from_bytes(frame.msg.code_address, "big")
    return _REASONS[number](frame, bytes(frame.msg.data), error)


def _word(data: bytes, index: int, size: int = 32) -> int:
    return int.from_bytes(data[index * size : (index + 1) * size], "big")


def _modexp(frame: Any, data: bytes, error: VMError) -> str:
    if frame.msg.gas < osaka_modexp_gas(data):
        return OUT_OF_GAS
    return "one or more of base/exponent/modulus length exceeded 1024 bytes"


# alt_bn128


def _bn_number_failure(numbers: Iterator[int]) -> str | None:
    for number in numbers:
        if number == BN_FIELD:
            return "bn256: coordinate equals modulus"
        if number > BN_FIELD:
            return "bn256: coordinate exceeds modulus"
    return None


def _bn_point(points: int) -> Reason:
    """Return the reason of the addition (two points) or multiplication (one)."""

    def reason(frame: Any, data: bytes, error: VMError) -> str:
        data = data.ljust(128, b"\x00")
        numbers = (_word(data, index) for index in range(2 * points))
        return _bn_number_failure(numbers) or "bn256: malformed point"

    return reason


def _bn_pairing(frame: Any, data: bytes, error: VMError) -> str:
    if len(data) % 192:
        is_istanbul = (9).to_bytes(20, "big") in frame.precompiles
        base, each = (45_000, 34_000) if is_istanbul else (100_000, 80_000)
        if frame.msg.gas < base + len(data) // 192 * each:
            return OUT_OF_GAS
        return "bad elliptic curve pairing size"
    numbers = (_word(data, index) for index in range(len(data) // 32))
    return _bn_number_failure(numbers) or "bn256: malformed point"


# BLAKE2b


def _blake2(frame: Any, data: bytes, error: VMError) -> str:
    if len(data) != 213:
        return INVALID_LENGTH
    return OUT_OF_GAS if frame.msg.gas < _word(data, 0, 4) else "invalid final flag"


# Blobs


def _point_evaluation(frame: Any, data: bytes, error: VMError) -> str:
    if len(data) != 192:
        return INVALID_LENGTH
    commitment = data[96:144]
    if b"\x01" + hashlib.sha256(commitment).digest()[1:] != data[:32]:
        return "mismatched versioned hash"
    detail = "can't verify opening proof"
    if max(_word(data, 1), _word(data, 2)) >= BLS_MODULUS:
        detail = "scalar is not canonical when interpreted as a big integer"
    return f"error verifying kzg proof: {detail}"


# BLS12-381


def _msm_gas(price: int, discounts: list[int], pairs: int) -> int:
    if not pairs:
        return 0
    discount = discounts[min(pairs, len(discounts)) - 1]
    return pairs * price * discount // 1000


def _bls(
    size: int, points: tuple[int, ...], price: Callable[[int], int], *, many: bool
) -> Reason:
    """Return the reason of an operation on BLS12-381.

    size: bytes of its input, or with `many` of each of its inputs. points: field
    elements of each point in it. price: by the number of inputs.
    """

    def reason(frame: Any, data: bytes, error: VMError) -> str:
        if frame.msg.gas < price(len(data) // size):
            return OUT_OF_GAS
        if not data or len(data) % size or (not many and len(data) != size):
            return INVALID_LENGTH
        for start in range(0, len(data), size):
            found = _bls_element_failure(data[start : start + 64 * sum(points)])
            if found is not None:
                return found
        group = _bls_group(error, points)
        return group or "invalid point: not on curve"

    return reason


def _bls_element_failure(elements: bytes) -> str | None:
    for index in range(len(elements) // 64):
        element = _word(elements, index, 64)
        if element >= 2**384:
            return "invalid field element top bytes"
        if element >= BLS_FIELD:
            return "invalid fp.Element encoding"
    return None


def _bls_group(error: VMError, points: tuple[int, ...]) -> str | None:
    """Return which point lies on the curve but not in the group, if that is it."""
    text = str(error)
    if "ub-group" not in text:
        return None
    number = 2 if "G2" in text or points == (4,) else 1
    return f"g{number} point is not on correct subgroup"


_REASONS: dict[int, Reason] = {
    0x05: _modexp,
    0x06: _bn_point(2),
    0x07: _bn_point(1),
    0x08: _bn_pairing,
    0x09: _blake2,
    0x0A: _point_evaluation,
    0x0B: _bls(256, (2, 2), lambda _: 375, many=False),
    0x0C: _bls(
        160,
        (2,),
        lambda pairs: _msm_gas(BLS12_G1_MSM_GAS, G1_MSM_DISCOUNTS, pairs),
        many=True,
    ),
    0x0D: _bls(512, (4, 4), lambda _: 600, many=False),
    0x0E: _bls(
        288,
        (4,),
        lambda pairs: _msm_gas(BLS12_G2_MSM_GAS, G2_MSM_DISCOUNTS, pairs),
        many=True,
    ),
    0x0F: _bls(384, (2, 4), lambda pairs: 32_600 * pairs + 37_700, many=True),
    0x10: _bls(64, (1,), lambda _: 5500, many=False),
    0x11: _bls(128, (2,), lambda _: 23_800, many=False),
}
