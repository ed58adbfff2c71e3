"""Arithmetic and comparison instructions, on the stack's list of integers.

The table maps py-evm's functions to those of this module, as in `evm.instructions`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eth.constants import UINT_256_MAX
from eth.exceptions import InsufficientStack
from eth.vm.logic import arithmetic, comparison

CEILING = 2**256
SIGN = 2**255

Values = list[int]


def _add(values: Values) -> None:
    b = values[-2]
    values[-1] = (values.pop() + b) & UINT_256_MAX


def _subtract(values: Values) -> None:
    b = values[-2]
    values[-1] = (values.pop() - b) & UINT_256_MAX


def _multiply(values: Values) -> None:
    b = values[-2]
    values[-1] = (values.pop() * b) & UINT_256_MAX


def _divide(values: Values) -> None:
    b = values[-2]
    a = values.pop()
    values[-1] = a // b if b else 0


def _modulo(values: Values) -> None:
    b = values[-2]
    a = values.pop()
    values[-1] = a % b if b else 0


def _less(values: Values) -> None:
    b = values[-2]
    values[-1] = 1 if values.pop() < b else 0


def _greater(values: Values) -> None:
    b = values[-2]
    values[-1] = 1 if values.pop() > b else 0


def _signed_less(values: Values) -> None:
    b = values[-2]
    # Flipping the sign bit maps signed order to unsigned order.
    values[-1] = 1 if values.pop() ^ SIGN < b ^ SIGN else 0


def _signed_greater(values: Values) -> None:
    b = values[-2]
    values[-1] = 1 if values.pop() ^ SIGN > b ^ SIGN else 0


def _equal(values: Values) -> None:
    b = values[-2]
    values[-1] = 1 if values.pop() == b else 0


def _is_zero(values: Values) -> None:
    values[-1] = 0 if values[-1] else 1


def _and(values: Values) -> None:
    b = values[-2]
    values[-1] = values.pop() & b


def _or(values: Values) -> None:
    b = values[-2]
    values[-1] = values.pop() | b


def _xor(values: Values) -> None:
    b = values[-2]
    values[-1] = values.pop() ^ b


def _not(values: Values) -> None:
    values[-1] ^= UINT_256_MAX


def _shift_left(values: Values) -> None:
    value = values[-2]
    shift = values.pop()
    values[-1] = (value << shift) & UINT_256_MAX if shift < 256 else 0


def _shift_right(values: Values) -> None:
    value = values[-2]
    shift = values.pop()
    values[-1] = value >> shift if shift < 256 else 0


def _signed(value: int) -> int:
    """Interpret a word as a signed number (two's complement)."""
    return value - CEILING if value >= SIGN else value


def _signed_divide(values: Values) -> None:
    b = _signed(values[-2])
    a = _signed(values.pop())
    # Python rounds down, the EVM towards zero.
    quotient = abs(a) // abs(b) if b else 0
    values[-1] = (-quotient if (a < 0) != (b < 0) else quotient) & UINT_256_MAX


def _signed_modulo(values: Values) -> None:
    b = _signed(values[-2])
    a = _signed(values.pop())
    rest = abs(a) % abs(b) if b else 0
    values[-1] = (-rest if a < 0 else rest) & UINT_256_MAX


def _add_modulo(values: Values) -> None:
    if len(values) < 3:
        raise InsufficientStack("Wanted 3 stack items")
    total = values.pop() + values.pop()
    modulus = values[-1]
    values[-1] = total % modulus if modulus else 0


def _multiply_modulo(values: Values) -> None:
    if len(values) < 3:
        raise InsufficientStack("Wanted 3 stack items")
    product = values.pop() * values.pop()
    modulus = values[-1]
    values[-1] = product % modulus if modulus else 0


def _sign_extend(values: Values) -> None:
    value = values[-2]
    size = values.pop()
    if size < 31:
        sign = 1 << 8 * size + 7
        low = value & (sign - 1)
        values[-1] = low | (CEILING - sign) if value & sign else low


def _byte(values: Values) -> None:
    value = values[-2]
    position = values.pop()
    values[-1] = value >> 8 * (31 - position) & 0xFF if position < 32 else 0


def _shift_right_signed(values: Values) -> None:
    value = _signed(values[-2])
    values[-1] = value >> min(values.pop(), 256) & UINT_256_MAX


ARITHMETIC: dict[Any, Callable[[Values], None]] = {
    arithmetic.add: _add,
    arithmetic.sub: _subtract,
    arithmetic.mul: _multiply,
    arithmetic.div: _divide,
    arithmetic.sdiv: _signed_divide,
    arithmetic.mod: _modulo,
    arithmetic.smod: _signed_modulo,
    arithmetic.addmod: _add_modulo,
    arithmetic.mulmod: _multiply_modulo,
    arithmetic.signextend: _sign_extend,
    arithmetic.shl: _shift_left,
    arithmetic.shr: _shift_right,
    arithmetic.sar: _shift_right_signed,
    comparison.byte_op: _byte,
    comparison.lt: _less,
    comparison.gt: _greater,
    comparison.slt: _signed_less,
    comparison.sgt: _signed_greater,
    comparison.eq: _equal,
    comparison.iszero: _is_zero,
    comparison.and_op: _and,
    comparison.or_op: _or,
    comparison.xor: _xor,
    comparison.not_op: _not,
}
"""py-evm's logic function → ours, which only uses the stack.

Each function reads its deepest operand first. Too few items raise IndexError or
InsufficientStack before anything is popped."""
