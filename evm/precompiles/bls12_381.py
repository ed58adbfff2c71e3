"""The curve BLS12-381 (EIP-2537), with arkworks."""

from __future__ import annotations

from py_arkworks_bls12381 import GT, G1Point, G2Point, Scalar

from evm.kzg import BASE_FIELD
from evm.precompiles.contract import Data, PrecompileError

_PADDING = bytes(16)
_FIELD_BYTES = BASE_FIELD.to_bytes(48, "big")
_ELEMENT = 64
"""Bytes of a field element: 16 zeros and 48 of the number."""
_G1, _G2, _SCALAR = 2 * _ELEMENT, 4 * _ELEMENT, 32
_PAIR = _G1 + _G2

G1_ADD_GAS = 375
G2_ADD_GAS = 600
MAP_TO_G1_GAS = 5500
MAP_TO_G2_GAS = 23_800

_G1_DISCOUNTS = """
1000 949 848 797 764 750 738 728 719 712 705 698 692 687 682 677 673 669 665 661
658 654 651 648 645 642 640 637 635 632 630 627 625 623 621 619 617 615 613 611 609
608 606 604 603 601 599 598 596 595 593 592 591 589 588 586 585 584 582 581 580 579
577 576 575 574 573 572 570 569 568 567 566 565 564 563 562 561 560 559 558 557 556
555 554 553 552 551 550 549 548 547 547 546 545 544 543 542 541 540 540 539 538 537
536 536 535 534 533 532 532 531 530 529 528 528 527 526 525 525 524 523 522 522 521
520 520 519
"""
_G2_DISCOUNTS = """
1000 1000 923 884 855 832 812 796 782 770 759 749 740 732 724 717 711 704 699 693
688 683 679 674 670 666 663 659 655 652 649 646 643 640 637 634 632 629 627 624 622
620 618 615 613 611 609 607 606 604 602 600 598 597 595 593 592 590 589 587 586 584
583 582 580 579 578 576 575 574 573 571 570 569 568 567 566 565 563 562 561 560 559
558 557 556 555 554 553 552 552 551 550 549 548 547 546 545 545 544 543 542 541 541
540 539 538 537 537 536 535 535 534 533 532 532 531 530 530 529 528 528 527 526 526
525 524 524
"""
G1_MSM_DISCOUNTS = [int(number) for number in _G1_DISCOUNTS.split()]
G2_MSM_DISCOUNTS = [int(number) for number in _G2_DISCOUNTS.split()]
"""Thousandths of the price of a sum of products, for 1, 2, … pairs."""


def g1_msm_gas(data: Data) -> int:
    """Return the gas of a sum of products in G1."""
    return _msm_gas(len(data) // (_G1 + _SCALAR), 12_000, G1_MSM_DISCOUNTS)


def g2_msm_gas(data: Data) -> int:
    """Return the gas of a sum of products in G2."""
    return _msm_gas(len(data) // (_G2 + _SCALAR), 22_500, G2_MSM_DISCOUNTS)


def _msm_gas(pairs: int, each: int, discounts: list[int]) -> int:
    """Return the price of a multi-scalar multiplication.

    discounts: thousandths of the price, for 1, 2, … pairs. The last one also applies to
        more pairs.
    """
    if not pairs:
        return 0
    return pairs * each * discounts[min(pairs, len(discounts)) - 1] // 1000


def pairing_gas(data: Data) -> int:
    """Return the gas of a pairing check."""
    return 37_700 + 32_600 * (len(data) // _PAIR)


def g1_add(data: Data) -> bytes:
    """Return the sum of two points, which need not be in the subgroup."""
    data = _sized(data, 2 * _G1)
    return _write((_read_g1(data[:_G1]) + _read_g1(data[_G1:])).to_xy_bytes_be())


def g2_add(data: Data) -> bytes:
    """Return the sum of two points, which need not be in the subgroup."""
    data = _sized(data, 2 * _G2)
    return _write((_read_g2(data[:_G2]) + _read_g2(data[_G2:])).to_xy_bytes_be())


def g1_msm(data: Data) -> bytes:
    """Return the sum of points, each multiplied by its number."""
    points, scalars = [], []
    for one in _chunks(data, _G1 + _SCALAR):
        points.append(_in_g1(_read_g1(one[:_G1])))
        scalars.append(Scalar.from_be_bytes_mod_order(one[_G1:]))
    return _write(G1Point.multiexp_unchecked(points, scalars).to_xy_bytes_be())


def g2_msm(data: Data) -> bytes:
    """Return the sum of points, each multiplied by its number."""
    points, scalars = [], []
    for one in _chunks(data, _G2 + _SCALAR):
        points.append(_in_g2(_read_g2(one[:_G2])))
        scalars.append(Scalar.from_be_bytes_mod_order(one[_G2:]))
    return _write(G2Point.multiexp_unchecked(points, scalars).to_xy_bytes_be())


def pairing(data: Data) -> bytes:
    """Return a 32-byte word: 1 if the product of the pairings is one, otherwise 0."""
    firsts, seconds = [], []
    for pair in _chunks(data, _PAIR):
        first, second = _read_g1(pair[:_G1]), _read_g2(pair[_G1:])
        firsts.append(_in_g1(first))
        seconds.append(_in_g2(second))
    return int(GT.pairing_check(firsts, seconds)).to_bytes(32, "big")


def map_to_g1(data: Data) -> bytes:
    """Return the point of G1 to which a field element is mapped."""
    data = _sized(data, _ELEMENT)
    return _write(G1Point.map_from_fp_be(_read_elements(data)).to_xy_bytes_be())


def map_to_g2(data: Data) -> bytes:
    """Return the point of G2 to which an element of the extension field is mapped."""
    data = _sized(data, 2 * _ELEMENT)
    return _write(G2Point.map_from_fp2_be(_read_elements(data)).to_xy_bytes_be())


# All below raise PrecompileError.


def _sized(data: Data, length: int) -> bytes:
    if len(data) != length:
        raise PrecompileError("invalid input length")
    return bytes(data)


def _chunks(data: Data, size: int) -> list[bytes]:
    if not data or len(data) % size:
        raise PrecompileError("invalid input length")
    data = bytes(data)
    return [data[start : start + size] for start in range(0, len(data), size)]


def _read_elements(data: bytes) -> bytes:
    """Return field elements of 48 bytes each."""
    elements = []
    for start in range(0, len(data), _ELEMENT):
        element = data[start + 16 : start + _ELEMENT]
        if data[start : start + 16] != _PADDING:
            raise PrecompileError("invalid field element top bytes")
        if element >= _FIELD_BYTES:
            raise PrecompileError("invalid fp.Element encoding")
        elements.append(element)
    return b"".join(elements)


def _read_g1(data: bytes) -> G1Point:
    try:
        return G1Point.from_xy_bytes_unchecked_be(_read_elements(data))
    except ValueError as error:
        raise PrecompileError("invalid point: not on curve") from error


def _read_g2(data: bytes) -> G2Point:
    try:
        return G2Point.from_xy_bytes_unchecked_be(_read_elements(data))
    except ValueError as error:
        raise PrecompileError("invalid point: not on curve") from error


def _in_g1(point: G1Point) -> G1Point:
    if not point.is_in_subgroup():
        raise PrecompileError("g1 point is not on correct subgroup")
    return point


def _in_g2(point: G2Point) -> G2Point:
    if not point.is_in_subgroup():
        raise PrecompileError("g2 point is not on correct subgroup")
    return point


def _write(elements: bytes) -> bytes:
    """Return elements of 48 bytes with their padding."""
    return b"".join(
        _PADDING + elements[start : start + 48] for start in range(0, len(elements), 48)
    )
