"""Describes transactions for people."""

from __future__ import annotations

from typing import Any

from wallets.signing.functions import describe_call
from wallets.signing.transactions import DYNAMIC_FEE, Transaction

_GIVES_CONTROL = (
    "approve(",
    "increaseAllowance(",
    "permit(",
    "setApprovalForAll(",
    "transferOwnership(",
    "upgradeTo",
)
"""Functions that give another address control over the owner's assets or contract."""


def describe_transaction(transaction: Transaction) -> dict[str, Any]:
    """Return the template's context for a transaction; amounts are in ether or gwei."""
    call = None if transaction.to is None else describe_call(transaction.data)
    return {
        "transaction": transaction,
        "value": ether(transaction.value),
        "max_cost": ether(transaction.max_cost),
        "max_fee": ether(transaction.max_cost - transaction.value),
        "fee_per_gas": gwei(transaction.max_fee_per_gas),
        "priority_fee_per_gas": gwei(transaction.max_priority_fee_per_gas),
        "is_dynamic": transaction.type == DYNAMIC_FEE,
        "call": call,
        "gives_control": call is not None and call.name.startswith(_GIVES_CONTROL),
        "data_hex": "0x" + transaction.data.hex(),
    }


def ether(wei: int) -> str:
    """Return an amount of wei in ether, exactly: `1,234.05`."""
    return _shifted(wei, 18)


def gwei(wei: int) -> str:
    """Return an amount of wei in gwei, exactly."""
    return _shifted(wei, 9)


def _shifted(number: int, digits: int) -> str:
    whole, rest = divmod(number, 10**digits)
    fraction = f"{rest:0{digits}d}".rstrip("0")
    return f"{whole:,}" + (f".{fraction}" if fraction else "")
