"""The stack of a frame: a list of integers, the top is its last item."""

from __future__ import annotations

from eth.exceptions import FullStack, InsufficientStack

from evm.stack_limit import STACK_LIMIT

"""Maximum number of items on the stack."""
ADDRESS_MASK = 2**160 - 1


def address_of(word: int) -> bytes:
    """Return the address in a stack item."""
    return (word & ADDRESS_MASK).to_bytes(20, "big")


def minimal_bytes(value: int) -> bytes:
    """Return a big-endian number without leading zeros. Zero is one byte."""
    return value.to_bytes((value.bit_length() + 7) // 8 or 1, "big")


class StackMethods:
    """Methods of a Computation through which py-evm's opcodes use the stack.

    Raises: InsufficientStack if too few items are on the stack; FullStack if the limit
        of 1024 items is exceeded.
    """

    stack: list[int]
    """Items of 0 ≤ item < 2**256."""

    def stack_push_int(self, value: int) -> None:
        """Push a number."""
        if len(self.stack) >= STACK_LIMIT:
            raise FullStack("Stack limit reached")
        self.stack.append(value)

    def stack_push_bytes(self, value: bytes) -> None:
        """Push a big-endian number of up to 32 bytes."""
        self.stack_push_int(int.from_bytes(value, "big"))

    def stack_pop1_int(self) -> int:
        """Pop a number."""
        if not self.stack:
            raise InsufficientStack("Wanted 1 stack item, had none")
        return self.stack.pop()

    def stack_pop1_bytes(self) -> bytes:
        """Pop a number, as big-endian bytes without leading zeros."""
        return minimal_bytes(self.stack_pop1_int())

    def stack_pop_ints(self, count: int) -> list[int]:
        """Pop numbers, the top first."""
        values = self.stack
        if count > len(values):
            raise InsufficientStack(
                f"Wanted {count} stack items, only had {len(values)}"
            )
        items = values[: -count - 1 : -1]
        del values[-count:]
        return items

    def stack_pop_bytes(self, count: int) -> list[bytes]:
        """Pop numbers, the top first, as big-endian bytes without leading zeros."""
        return list(map(minimal_bytes, self.stack_pop_ints(count)))

    stack_pop1_any = stack_pop1_int
    stack_pop_any = stack_pop_ints

    def stack_swap(self, position: int) -> None:
        """Exchange the top with the item `position` places below it."""
        values = self.stack
        if position >= len(values):
            raise InsufficientStack(f"Insufficient stack items for SWAP{position}")
        values[-1], values[-1 - position] = values[-1 - position], values[-1]

    def stack_dup(self, position: int) -> None:
        """Push a copy of the item at a position. 1 is the top."""
        if position > len(self.stack):
            raise InsufficientStack(f"Insufficient stack items for DUP{position}")
        self.stack_push_int(self.stack[-position])
