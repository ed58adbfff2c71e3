"""Describes transactions for people."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from abi.addresses import checksummed
from abi.batches import (
    AbiOf,
    decode_batch,
    has_selector,
    no_abi,
    selectors_in,
)
from abi.erc20 import shifted
from abi.selectors import well_known
from abi.values import Argument
from explorer.abis import Abis
from explorer.arguments import value_text
from keys.models import User
from wallets.services.targets import network_of
from wallets.signing.known.phrases import is_unlimited
from wallets.signing.transactions import DYNAMIC_FEE, Transaction
from wallets.signing.typed_data import Field

MAX_ARGUMENTS = 200
"""Arguments that a page shows, items of arrays included."""

_GIVES_CONTROL = (
    "approve(",
    "increaseAllowance(",
    "permit(",
    "setApprovalForAll(",
    "transferOwnership(",
    "upgradeTo",
)
"""Functions that give another address control over the owner's assets or contract."""


def describe_transaction(transaction: Transaction, abi_of: AbiOf) -> dict[str, Any]:
    """Return the template's context for a transaction; amounts are in ether or gwei.

    abi_of: see `uploaded_for`.
    """
    to, data = transaction.to, transaction.data
    call = None
    if to is not None:
        target = bytes.fromhex(to[2:])
        call = decode_batch(data, target, abi_of, MAX_ARGUMENTS)
    return {
        "transaction": transaction,
        "to": None if to is None else checksummed(bytes.fromhex(to[2:])),
        "value": ether(transaction.value),
        "max_cost": ether(transaction.max_cost),
        "max_fee": ether(transaction.max_cost - transaction.value),
        "gas": f"{transaction.gas:,}",
        "fee_per_gas": gwei(transaction.max_fee_per_gas),
        "priority_fee_per_gas": gwei(transaction.max_priority_fee_per_gas),
        "is_dynamic": transaction.type == DYNAMIC_FEE,
        "selector": "" if to is None or len(data) < 4 else "0x" + data[:4].hex(),
        "call": call,
        "arguments": [] if call is None else fields_of(call.arguments),
        "gives_control": _gives_control(data),
        "data_hex": "0x" + data.hex(),
    }


def uploaded_for(transaction: Transaction, user: User) -> AbiOf:
    """Return the definitions of the functions that a transaction calls.

    They are those that the user, their account or staff have uploaded in the explorer.
    """
    network = network_of(transaction.chain_id)
    if network is None:
        return no_abi
    abis = Abis(network, user)
    abis.read(selectors_in(transaction.data))
    return abis.of


def _gives_control(data: bytes) -> bool:
    """Return whether a call, or one inside it, gives control over the sender's assets.

    Uploaded definitions have no influence: they may give a function another name. Nor have
    the arguments: some contracts ignore bytes that fit no address.
    """
    return has_selector(data, _control_selectors())


@cache
def _control_selectors() -> list[bytes]:
    """Return the selectors of the well-known functions of `_GIVES_CONTROL`."""
    known = well_known().all_functions()
    return [one.key for one in known if one.signature.startswith(_GIVES_CONTROL)]


def fields_of(arguments: Iterable[Argument]) -> list[Field]:
    """Return a call's arguments for display."""
    return [
        _field(argument, argument.name or f"{number}")
        for number, argument in enumerate(arguments)
    ]


def _field(argument: Argument, name: str) -> Field:
    if isinstance(argument.value, tuple):
        inner = tuple(fields_of(argument.value))
        left_out = argument.length - len(inner) if argument.length else 0
        note = f"{left_out:,} more are not shown" if left_out else ""
        return Field(name, argument.type, None, inner, note)
    if argument.inner is not None:
        call = Field("function", "", argument.inner.signature)
        return Field(
            name, argument.type, None, (call, *fields_of(argument.inner.arguments))
        )
    text = value_text(argument)
    # Allowances slightly below the highest amount are as good as unlimited, too.
    is_huge = argument.type == "uint256" and isinstance(argument.value, int)
    if is_huge and is_unlimited(int(argument.value)) and "unlimited" not in text:
        return Field(name, argument.type, text, note="more than any token's supply")
    return Field(name, argument.type, text)


def ether(wei: int) -> str:
    """Return an amount of wei in ether, exactly: `1,234.05`."""
    return shifted(wei, 18)


def gwei(wei: int) -> str:
    """Return an amount of wei in gwei, exactly."""
    return shifted(wei, 9)
