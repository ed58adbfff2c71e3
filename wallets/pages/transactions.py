"""Transactions in words."""

from __future__ import annotations

from typing import Any

from wallets.signing.functions import describe_call
from wallets.signing.transactions import DYNAMIC_FEE, Transaction

_HANDS_OVER = (
    "approve(",
    "increaseAllowance(",
    "permit(",
    "setApprovalForAll(",
    "transferOwnership(",
    "upgradeTo",
)
"""Functions after which somebody else may do what only the owner could."""


def describe_transaction(transaction: Transaction) -> dict[str, Any]:
    """Return what the page says of a transaction; amounts are texts in ether or gwei."""
    call = None if transaction.to is None else describe_call(transaction.data)
    return {
        "transaction": transaction,
        "value": ether(transaction.value),
        "most": ether(transaction.most),
        "most_fee": ether(transaction.most - transaction.value),
        "fee_per_gas": gwei(transaction.max_fee_per_gas),
        "priority_fee_per_gas": gwei(transaction.max_priority_fee_per_gas),
        "is_dynamic": transaction.type == DYNAMIC_FEE,
        "call": call,
        "hands_over": call is not None and call.name.startswith(_HANDS_OVER),
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
