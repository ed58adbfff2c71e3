"""Arithmetic and comparison instructions, on the stack's list of integers.

Each function reads its deepest operand first. Too few items raise IndexError before
anything is popped. The constant price was charged; EXP also has a variable one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evm.frame_errors import StackUnderflow

if TYPE_CHECKING:
    from evm.frame import Frame

CEILING = 2**256
MAX_WORD = CEILING - 1
SIGN = 2**255

Values = list[int]


def add(values: Values) -> None:
    """ADD: push the sum modulo 2**256."""
    b = values[-2]
    values[-1] = (values.pop() + b) & MAX_WORD


def sub(values: Values) -> None:
    """SUB: push the difference modulo 2**256."""
    b = values[-2]
    values[-1] = (values.pop() - b) & MAX_WORD


def mul(values: Values) -> None:
    """MUL: push the product modulo 2**256."""
    b = values[-2]
    values[-1] = (values.pop() * b) & MAX_WORD


def div(values: Values) -> None:
    """DIV: push the quotient, 0 for a division by 0."""
    b = values[-2]
    a = values.pop()
    values[-1] = a // b if b else 0


def mod(values: Values) -> None:
    """MOD: push the remainder, 0 for a division by 0."""
    b = values[-2]
    a = values.pop()
    values[-1] = a % b if b else 0


def lt(values: Values) -> None:
    """LT: push whether the top is less than the item below."""
    b = values[-2]
    values[-1] = 1 if values.pop() < b else 0


def gt(values: Values) -> None:
    """GT: push whether the top is greater than the item below."""
    b = values[-2]
    values[-1] = 1 if values.pop() > b else 0


def slt(values: Values) -> None:
    """SLT: compare signed numbers as LT does."""
    b = values[-2]
    # Flipping the sign bit maps signed order to unsigned order.
    values[-1] = 1 if values.pop() ^ SIGN < b ^ SIGN else 0


def sgt(values: Values) -> None:
    """SGT: compare signed numbers as GT does."""
    b = values[-2]
    values[-1] = 1 if values.pop() ^ SIGN > b ^ SIGN else 0


def eq(values: Values) -> None:
    """EQ: push whether two items are equal."""
    b = values[-2]
    values[-1] = 1 if values.pop() == b else 0


def iszero(values: Values) -> None:
    """ISZERO: push whether the top is 0."""
    values[-1] = 0 if values[-1] else 1


def and_(values: Values) -> None:
    """AND: push the bits that both items have."""
    b = values[-2]
    values[-1] = values.pop() & b


def or_(values: Values) -> None:
    """OR: push the bits that at least one item has."""
    b = values[-2]
    values[-1] = values.pop() | b


def xor(values: Values) -> None:
    """XOR: push the bits that exactly one item has."""
    b = values[-2]
    values[-1] = values.pop() ^ b


def not_(values: Values) -> None:
    """NOT: invert all bits."""
    values[-1] ^= MAX_WORD


def shl(values: Values) -> None:
    """SHL: shift to the left (EIP-145)."""
    value = values[-2]
    shift = values.pop()
    values[-1] = (value << shift) & MAX_WORD if shift < 256 else 0


def shr(values: Values) -> None:
    """SHR: shift to the right (EIP-145)."""
    value = values[-2]
    shift = values.pop()
    values[-1] = value >> shift if shift < 256 else 0


def _signed(value: int) -> int:
    """Interpret a word as a signed number (two's complement)."""
    return value - CEILING if value >= SIGN else value


def sdiv(values: Values) -> None:
    """SDIV: divide signed numbers, and round towards 0."""
    b = _signed(values[-2])
    a = _signed(values.pop())
    # Python rounds down, the EVM towards zero.
    quotient = abs(a) // abs(b) if b else 0
    values[-1] = (-quotient if (a < 0) != (b < 0) else quotient) & MAX_WORD


def smod(values: Values) -> None:
    """SMOD: push the remainder of signed numbers, with the dividend's sign."""
    b = _signed(values[-2])
    a = _signed(values.pop())
    rest = abs(a) % abs(b) if b else 0
    values[-1] = (-rest if a < 0 else rest) & MAX_WORD


def addmod(values: Values) -> None:
    """ADDMOD: push a sum modulo the third item, without an overflow."""
    if len(values) < 3:
        raise IndexError
    total = values.pop() + values.pop()
    modulus = values[-1]
    values[-1] = total % modulus if modulus else 0


def mulmod(values: Values) -> None:
    """MULMOD: push a product modulo the third item, without an overflow."""
    if len(values) < 3:
        raise IndexError
    product = values.pop() * values.pop()
    modulus = values[-1]
    values[-1] = product % modulus if modulus else 0


def signextend(values: Values) -> None:
    """SIGNEXTEND: extend the sign of a number of `size` + 1 bytes."""
    value = values[-2]
    size = values.pop()
    if size < 31:
        sign = 1 << 8 * size + 7
        low = value & (sign - 1)
        values[-1] = low | (CEILING - sign) if value & sign else low


def byte(values: Values) -> None:
    """BYTE: push one byte of a word, counted from the most significant one."""
    value = values[-2]
    position = values.pop()
    values[-1] = value >> 8 * (31 - position) & 0xFF if position < 32 else 0


def sar(values: Values) -> None:
    """SAR: shift a signed number to the right (EIP-145)."""
    value = _signed(values[-2])
    values[-1] = value >> min(values.pop(), 256) & MAX_WORD


def clz(values: Values) -> None:
    """CLZ: push the number of leading zero bits, 256 for 0 (EIP-7939)."""
    values[-1] = 256 - values[-1].bit_length()


def exp_cost(frame: Frame) -> int:
    """Return the gas of EXP (EIP-160)."""
    size = (frame.stack[-2].bit_length() + 7) >> 3
    return frame.prices.exp + frame.prices.exp_byte * size


def exp(frame: Frame) -> None:
    """EXP: push a power modulo 2**256 (EIP-160)."""
    # STACK
    values = frame.stack
    if len(values) < 2:
        raise StackUnderflow(len(values), 2)
    # GAS
    frame.charge(exp_cost(frame))
    # OPERATION
    base = values.pop()
    values[-1] = pow(base, values[-1], CEILING)
    # PROGRAM COUNTER
    frame.pc += 1
