"""The stack of a frame: integers only, so that no operation asks what it popped."""

from __future__ import annotations

from eth.exceptions import FullStack, InsufficientStack

STACK_LIMIT = 1024
"""Items."""


def minimal_bytes(value: int) -> bytes:
    """Return a big-endian number without leading zeros; zero is one byte."""
    return value.to_bytes((value.bit_length() + 7) // 8 or 1, "big")


class Stack:
    """What py-evm's opcodes pop from and push to; `values[-1]` is the top.

    Raises: InsufficientStack, FullStack.
    """

    __slots__ = ("values",)

    def __init__(self) -> None:
        self.values: list[int] = []

    def __len__(self) -> int:
        return len(self.values)

    def push_int(self, value: int) -> None:
        """Push 0 ≤ value < 2**256."""
        if len(self.values) >= STACK_LIMIT:
            raise FullStack("Stack limit reached")
        self.values.append(value)

    def push_bytes(self, value: bytes) -> None:
        """Push a big-endian number of up to 32 bytes."""
        self.push_int(int.from_bytes(value, "big"))

    def pop1_int(self) -> int:
        """Return the top as a number."""
        if not self.values:
            raise InsufficientStack("Wanted 1 stack item, had none")
        return self.values.pop()

    def pop1_bytes(self) -> bytes:
        """Return the top as big-endian bytes without leading zeros."""
        return minimal_bytes(self.pop1_int())

    def pop_ints(self, count: int) -> tuple[int, ...]:
        """Return the topmost items, the top first."""
        values = self.values
        if count > len(values):
            raise InsufficientStack(
                f"Wanted {count} stack items, only had {len(values)}"
            )
        items = values[: -count - 1 : -1]
        del values[-count:]
        return tuple(items)

    def pop_bytes(self, count: int) -> tuple[bytes, ...]:
        """Return the topmost items as minimal big-endian bytes, the top first."""
        return tuple(map(minimal_bytes, self.pop_ints(count)))

    pop1_any = pop1_int
    pop_any = pop_ints

    def swap(self, position: int) -> None:
        """Exchange the top with the item that far below it."""
        values = self.values
        if position >= len(values):
            raise InsufficientStack(f"Insufficient stack items for SWAP{position}")
        values[-1], values[-1 - position] = values[-1 - position], values[-1]

    def dup(self, position: int) -> None:
        """Push a copy of the item at a position; 1 is the top."""
        if position > len(self.values):
            raise InsufficientStack(f"Insufficient stack items for DUP{position}")
        self.push_int(self.values[-position])
