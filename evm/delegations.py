"""Accounts that run a contract's code as their own: https://eips.ethereum.org/EIPS/eip-7702."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eth_typing import Address
from eth_utils.exceptions import ValidationError

if TYPE_CHECKING:
    from evm.context import FrameState
    from evm.gas import GasMeter
    from evm.intrinsic import Executable
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
    state: FrameState, transaction: Executable, meter: GasMeter
) -> int:
    """Set the delegations of a transaction's authorizations. Return the gas refund.

    Invalid authorizations are skipped.

    meter: pays for changed accounts, new accounts and delegations (EIP-2780).

    Raises: OutOfGas, from Amsterdam on.
    """
    world, prices, refund = state.world, state.fork.prices, 0
    written = {transaction.sender}
    """Accounts whose change was paid for."""
    if transaction.value:
        written.add(transaction.to)
    delegating: set[Address] = set()
    """Accounts that had a delegation, or whose delegation was paid for."""
    for authorization in transaction.authorization_list:
        authority = _authority(state, authorization)
        if authority is None:
            continue
        is_known, new = world.account_exists(authority), authorization.address
        if world.get_code(authority):
            delegating.add(authority)
        if prices.state is not None:
            if authority not in written:
                meter.charge(prices.account_write)
                written.add(authority)
            if world.account_is_empty(authority):
                meter.charge_state(prices.state.account)
            if new != ZERO_ADDRESS and authority not in delegating:
                meter.charge_state(prices.state.delegation)
                delegating.add(authority)
        if new == ZERO_ADDRESS:
            world.delete_code(authority)
        else:
            world.set_code(authority, DELEGATION_PREFIX + new)
        world.increment_nonce(authority)
        refund += prices.existing_account_refund if is_known else 0
    return refund


def _authority(state: FrameState, authorization: Authorization) -> Address | None:
    """Return the account that has signed an authorization, None if it is not valid."""
    try:
        authorization.validate(state.block.chain_id)
        authority = authorization.authority()
    except ValidationError:
        return None
    world = state.world
    world.mark_address_warm(authority)
    code = world.get_code(authority)
    if code and delegate_of(code) is None:
        return None
    return authority if world.get_nonce(authority) == authorization.nonce else None
