"""State and block overrides of a call.

Source: go-ethereum v1.17.10, internal/ethapi/override/override.go
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eth_typing import Address, Hash32
from eth_utils.address import to_checksum_address

if TYPE_CHECKING:
    from evm.blocks import Withdrawal
    from evm.precompiles.contract import Precompile
    from evm.rules.fork import Fork
    from evm.world import World


class InvalidOverride(Exception):
    """Raised when overrides contradict each other. `str` is geth's text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountOverride:
    """The new values of one account. None keeps a value."""

    nonce: int | None = None
    code: bytes | None = None
    balance: int | None = None
    """Wei."""
    state: Mapping[int, int] | None = None
    """Slots that replace the account's whole storage."""
    state_diff: Mapping[int, int] | None = None
    """Slots that are changed."""
    move_precompile_to: Address | None = None
    """The address to which the precompiled contract at this one moves."""


StateOverrides = Mapping[Address, AccountOverride]


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockOverrides:
    """The new properties of a block. None keeps a property."""

    number: int | None = None
    difficulty: int | None = None
    time: int | None = None
    """Unix seconds."""
    gas_limit: int | None = None
    fee_recipient: Address | None = None
    prev_randao: Hash32 | None = None
    base_fee_per_gas: int | None = None
    """Wei."""
    blob_base_fee: int | None = None
    """Wei."""
    slot_number: int | None = None
    """Of the beacon chain."""
    fork: str | None = None
    """The name of the fork whose rules apply in place of the block's own."""
    beacon_root: Hash32 | None = None
    withdrawals: tuple[Withdrawal, ...] | None = None

    def refuse_unsupported(self) -> None:
        """Check that no override is given that only simulations support.

        Raises: InvalidOverride.
        """
        for name, value in (
            ("beaconRoot", self.beacon_root),
            ("withdrawals", self.withdrawals),
        ):
            if value is not None:
                raise InvalidOverride(
                    f'block override "{name}" is not supported for this RPC method'
                )


def override_state(
    world: World, overrides: StateOverrides, fork: Fork
) -> dict[bytes, Precompile]:
    """Apply overrides to a world, and return the precompiled contracts by address.

    fork: whose precompiled contracts may be moved. Raises: InvalidOverride.
    """
    precompiles = dict(fork.precompiles)
    apply_state_overrides(world, overrides, precompiles)
    return precompiles


def apply_state_overrides(
    world: World, overrides: StateOverrides, precompiles: dict[bytes, Precompile]
) -> None:
    """Apply overrides to a world, as if by an earlier transaction.

    precompiles: the precompiled contracts by address, which are changed as well.

    Raises: InvalidOverride.
    """
    taken: set[bytes] = set()
    for address in sorted(overrides):
        if address in taken:
            raise InvalidOverride(
                f"account {to_checksum_address(address)} has already been overridden "
                "by a precompile"
            )
        override = overrides[address]
        target = override.move_precompile_to
        if target is not None:
            _move(address, target, overrides, precompiles)
            taken.add(target)
        precompiles.pop(address, None)
        _override_account(world, address, override)
    world.lock_changes()


def _move(
    address: Address,
    target: Address,
    overrides: StateOverrides,
    precompiles: dict[bytes, Precompile],
) -> None:
    precompile = precompiles.get(address)
    if precompile is None:
        raise InvalidOverride(
            f"account {to_checksum_address(address)} is not a precompile"
        )
    if target in overrides:
        raise InvalidOverride(
            f"account {to_checksum_address(target)} is already overridden"
        )
    precompiles[target] = precompile


def _override_account(
    world: World, address: Address, override: AccountOverride
) -> None:
    if override.nonce is not None:
        world.set_nonce(address, override.nonce)
    if override.code is not None:
        world.set_code(address, override.code)
    if override.balance is not None:
        world.set_balance(address, override.balance)
    if override.state is not None and override.state_diff is not None:
        raise InvalidOverride(
            f"account {to_checksum_address(address)} has both 'state' and 'stateDiff'"
        )
    if override.state is not None:
        world.touch_account(address)
        world.delete_storage(address)
    slots = override.state if override.state is not None else override.state_diff
    if slots:
        world.touch_account(address)
        for slot, value in slots.items():
            world.set_storage(address, slot, value)
