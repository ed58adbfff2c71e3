"""How the interpreter's loop executes an opcode, and the types of its functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from evm.frame import Frame

# The loop first asks whether a kind is one of the first four, then whether it is one of
# the last two, which get the whole frame.
PUSH, DUPLICATE, COMPUTE, SWAP = range(4)
POP, JUMP_IF, NOTHING, JUMP, READ, GAS, HALT = range(4, 11)
OPERATE, END = range(11, 13)
"""Kinds of instructions: a function of the frame; a function that ends the frame."""

Operation = Callable[["Frame"], None]
"""Executes an instruction whose constant price was charged."""
Cost = Callable[["Frame"], int]
"""Returns the gas of an instruction beyond its constant price, with the operands on the
stack and the constant price charged. It changes nothing. Raises: FrameError."""
Refund = Callable[["Frame"], int]
"""Returns an instruction's change of the refund counter. It changes nothing."""
StateCost = Callable[["Frame"], int]
"""Returns the state gas that is charged together with the price. It changes nothing."""


class Instruction(NamedTuple):
    """An instruction, without the prices and rules of a fork."""

    kind: int
    argument: Any
    """See `evm.context.Entry`."""
    cost: Cost | None = None
    """None if the constant price is all. The operation charges the same."""
    refund: Refund | None = None
    state_cost: StateCost | None = None
    """None as well if the cost function or the operation checks it."""
