"""A world in which overrides have set any numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evm.world import World

if TYPE_CHECKING:
    from eth_typing import Address


class WrappingWorld(World):
    """A world whose balances wrap around at 2**256, as geth's numbers do.

    Without overrides, no balance can exceed the supply of ether or become negative.
    """

    def set_balance(self, address: Address, balance: int) -> None:
        """Set the balance in wei, modulo 2**256. Create the account if needed."""
        super().set_balance(address, balance % 2**256)
