"""Accounts that run a contract's code as their own: https://eips.ethereum.org/EIPS/eip-7702."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from eth_typing import Address
from eth_utils.exceptions import ValidationError

if TYPE_CHECKING:
    from evm.context import FrameState
    from evm.transactions import Authorization

DELEGATION_PREFIX = b"\xef\x01\x00"
DELEGATION_LENGTH = 23
"""Bytes: the prefix and an address."""
ZERO_ADDRESS = bytes(20)


def delegate_of(code: bytes) -> Address | None:
    """Return the account to which an account's code delegates, or None."""
    if len(code) == DELEGATION_LENGTH and code.startswith(DELEGATION_PREFIX):
        return Address(code[3:])
    return None


def resolved_code(state: FrameState, address: Address) -> tuple[bytes, Address | None]:
    """Return the code that a call of an account runs, and the account's delegate if any."""
    code = state.get_code(address)
    delegate = delegate_of(code) if state.fork.has_delegations else None
    return (code if delegate is None else state.get_code(delegate)), delegate


def apply_authorizations(
    state: FrameState, authorizations: Iterable[Authorization]
) -> int:
    """Set the delegations of a transaction's authorizations. Return the gas refund.

    Invalid authorizations are skipped.
    """
    return sum(_apply(state, authorization) for authorization in authorizations)


def _apply(state: FrameState, authorization: Authorization) -> int:
    try:
        authorization.validate(state.block.chain_id)
        authority = authorization.authority()
    except ValidationError:
        return 0
    world = state.world
    world.mark_address_warm(authority)
    code = world.get_code(authority)
    if code and delegate_of(code) is None:
        return 0
    if world.get_nonce(authority) != authorization.nonce:
        return 0
    is_known = world.account_exists(authority)
    if authorization.address == ZERO_ADDRESS:
        world.delete_code(authority)
    else:
        world.set_code(authority, DELEGATION_PREFIX + authorization.address)
    world.increment_nonce(authority)
    return state.fork.prices.existing_account_refund if is_known else 0
