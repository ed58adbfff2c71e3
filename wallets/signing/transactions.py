"""eth_sendTransaction: reads, completes and signs transactions.

The nonce is not completed here, because it is known only when the transaction is sent.
Source: https://ethereum.github.io/execution-apis/ eth_sendTransaction; EIP-155,
    EIP-2930 and EIP-1559 for types 0, 1 and 2
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nodeapi import encoding

LEGACY, ACCESS_LIST, DYNAMIC_FEE = 0, 1, 2

MAX_DATA_BYTES = 120 * 1024
"""Size limit of the input; go-ethereum's pool takes transactions of at most 128 KiB."""

MAX_ACCESS_LIST = 500
"""Limit of the addresses and slots of an access list together."""

TRANSACTION_GAS = 21_000
"""Gas of a transfer of ether to an account without code."""

_QUANTITY = re.compile(r"0x(0|[1-9a-fA-F][0-9a-fA-F]{0,63})")
_MAX_GAS = 2**63 - 1
_MAX_NONCE = 2**64 - 2
_OTHER_TYPES = ("blobVersionedHashes", "blobs", "maxFeePerBlobGas", "authorizationList")

AccessList = tuple[tuple[str, tuple[str, ...]], ...]
"""Addresses, each with its slots, as `0x…`."""


@dataclass(frozen=True, slots=True)
class TransactionRequest:
    """A transaction as requested by a dapp. Fields that the wallet chooses are None.

    sender, to: in lower case; `to` is None for the creation of a contract.
    Amounts and prices are in wei.
    """

    sender: str
    to: str | None
    value: int = 0
    data: bytes = b""
    type: int | None = None
    chain_id: int | None = None
    nonce: int | None = None
    gas: int | None = None
    gas_price: int | None = None
    max_fee_per_gas: int | None = None
    max_priority_fee_per_gas: int | None = None
    access_list: AccessList = ()

    def call(self) -> dict[str, Any]:
        """Return the parameter of eth_estimateGas."""
        members: dict[str, Any] = {"from": self.sender, "value": hex(self.value)}
        if self.to is not None:
            members["to"] = self.to
        if self.data:
            members["data"] = "0x" + self.data.hex()
        if self.access_list:
            members["accessList"] = access_list_json(self.access_list)
        return members


@dataclass(frozen=True, slots=True)
class GasPrices:
    """Prices of gas, in wei.

    base_fee: of the newest block, None on a chain without base fee.
    price: the usual gas price; on a chain with base fee, the usual priority fee.
    """

    base_fee: int | None
    price: int


@dataclass(frozen=True, slots=True)
class Transaction:
    """A complete transaction. The nonce is None unless the dapp has specified it.

    max_fee_per_gas, max_priority_fee_per_gas: the gas price for types 0 and 1. Amounts
        and prices are in wei.
    """

    type: int
    chain_id: int
    to: str | None
    value: int
    data: bytes
    gas: int
    max_fee_per_gas: int
    max_priority_fee_per_gas: int
    nonce: int | None = None
    access_list: AccessList = ()

    @property
    def max_cost(self) -> int:
        """The maximum cost in wei, with value and fee."""
        return self.value + self.gas * self.max_fee_per_gas


@dataclass(frozen=True, slots=True)
class Signed:
    """A signed transaction.

    raw: the EIP-2718 bytes. hash: 32 bytes.
    """

    raw: bytes
    hash: bytes


def read_transaction(value: Any) -> TransactionRequest:
    """Return a dapp's request to send a transaction; unknown members are ignored.

    Raises: ValueError, naming the member.
    """
    if not isinstance(value, dict):
        raise ValueError("expected a transaction object")
    given = {name: member for name, member in value.items() if member is not None}
    for name in _OTHER_TYPES:
        if name in given:
            raise ValueError(f"{name}: this wallet signs types 0, 1 and 2 only")
    to = given.get("to")
    data = _read_data(given)
    wanted = TransactionRequest(
        sender=_address(given.get("from"), "from"),
        to=None if to is None else _address(to, "to"),
        value=_quantity(given, "value") or 0,
        data=data,
        type=_quantity(given, "type"),
        chain_id=_quantity(given, "chainId"),
        nonce=_quantity(given, "nonce", _MAX_NONCE),
        gas=_quantity(given, "gas" if "gas" in given else "gasLimit", _MAX_GAS),
        gas_price=_quantity(given, "gasPrice"),
        max_fee_per_gas=_quantity(given, "maxFeePerGas"),
        max_priority_fee_per_gas=_quantity(given, "maxPriorityFeePerGas"),
        access_list=_read_access_list(given.get("accessList", [])),
    )
    _check(wanted)
    return wanted


def complete(
    wanted: TransactionRequest, prices: GasPrices, chain_id: int, gas: int
) -> Transaction:
    """Return a transaction in which missing members are filled in.

    The default fee is twice the base fee, which is enough for six full blocks.
    Raises: ValueError for dynamic fees on a chain without base fee.
    """
    kind = _type_of(wanted, prices)
    if kind == DYNAMIC_FEE:
        if prices.base_fee is None:
            raise ValueError("maxFeePerGas: this network has no dynamic fees")
        tip, most = wanted.max_priority_fee_per_gas, wanted.max_fee_per_gas
        if tip is None:
            tip = prices.price if most is None else min(prices.price, most)
        fee = 2 * prices.base_fee + tip if most is None else most
    else:
        usual = prices.price + 2 * (prices.base_fee or 0)
        tip = fee = usual if wanted.gas_price is None else wanted.gas_price
    return Transaction(
        type=kind,
        chain_id=chain_id,
        to=wanted.to,
        value=wanted.value,
        data=wanted.data,
        gas=gas,
        max_fee_per_gas=fee,
        max_priority_fee_per_gas=tip,
        nonce=wanted.nonce,
        access_list=wanted.access_list,
    )


def sign_transaction(transaction: Transaction, nonce: int, key: bytes) -> Signed:
    """Return a signed transaction.

    key: 32 bytes.
    """
    from eth_account import Account

    signed = Account.sign_transaction(_fields(transaction, nonce), key)
    return Signed(bytes(signed.raw_transaction), bytes(signed.hash))


def to_json(transaction: Transaction) -> dict[str, Any]:
    """Return a transaction as JSON for the database."""
    return {
        "type": transaction.type,
        "chainId": transaction.chain_id,
        "to": transaction.to,
        "value": hex(transaction.value),
        "data": "0x" + transaction.data.hex(),
        "gas": transaction.gas,
        "maxFeePerGas": hex(transaction.max_fee_per_gas),
        "maxPriorityFeePerGas": hex(transaction.max_priority_fee_per_gas),
        "nonce": None if transaction.nonce is None else hex(transaction.nonce),
        "accessList": access_list_json(transaction.access_list),
    }


def from_json(stored: Mapping[str, Any]) -> Transaction:
    """Return the transaction that `to_json` has made."""
    nonce = stored["nonce"]
    return Transaction(
        type=stored["type"],
        chain_id=stored["chainId"],
        to=stored["to"],
        value=int(stored["value"], 16),
        data=bytes.fromhex(stored["data"][2:]),
        gas=stored["gas"],
        max_fee_per_gas=int(stored["maxFeePerGas"], 16),
        max_priority_fee_per_gas=int(stored["maxPriorityFeePerGas"], 16),
        nonce=None if nonce is None else int(nonce, 16),
        access_list=_read_access_list(stored["accessList"]),
    )


def access_list_json(access_list: AccessList) -> list[dict[str, Any]]:
    """Return an access list in its JSON form."""
    return [
        {"address": address, "storageKeys": list(slots)}
        for address, slots in access_list
    ]


def _fields(transaction: Transaction, nonce: int) -> dict[str, Any]:
    """Return a transaction in eth-account's form."""
    fields: dict[str, Any] = {
        "chainId": transaction.chain_id,
        "nonce": nonce,
        "gas": transaction.gas,
        # eth-account requires a checksum in text, but not in bytes.
        "to": b"" if transaction.to is None else bytes.fromhex(transaction.to[2:]),
        "value": transaction.value,
        "data": transaction.data,
    }
    if transaction.type == DYNAMIC_FEE:
        fields["maxFeePerGas"] = transaction.max_fee_per_gas
        fields["maxPriorityFeePerGas"] = transaction.max_priority_fee_per_gas
    else:
        fields["gasPrice"] = transaction.max_fee_per_gas
    if transaction.type != LEGACY:
        fields["type"] = transaction.type
        fields["accessList"] = access_list_json(transaction.access_list)
    return fields


def _check(wanted: TransactionRequest) -> None:
    """Raise ValueError for members that contradict each other."""
    most, tip = wanted.max_fee_per_gas, wanted.max_priority_fee_per_gas
    is_dynamic = most is not None or tip is not None
    if wanted.type not in (None, LEGACY, ACCESS_LIST, DYNAMIC_FEE):
        raise ValueError("type: this wallet signs types 0, 1 and 2 only")
    if wanted.gas_price is not None and (is_dynamic or wanted.type == DYNAMIC_FEE):
        raise ValueError("gasPrice: can't be combined with maxFeePerGas")
    if is_dynamic and wanted.type in (LEGACY, ACCESS_LIST):
        raise ValueError("maxFeePerGas: only for transactions of type 2")
    if wanted.access_list and wanted.type == LEGACY:
        raise ValueError("accessList: not for transactions of type 0")
    if most is not None and tip is not None and tip > most:
        raise ValueError("maxPriorityFeePerGas: is more than maxFeePerGas")
    if wanted.to is None and not wanted.data:
        raise ValueError(
            "to: required, because there is no data to create a contract with"
        )


def _type_of(wanted: TransactionRequest, prices: GasPrices) -> int:
    if wanted.type is not None:
        return wanted.type
    if wanted.max_fee_per_gas is not None or (
        wanted.max_priority_fee_per_gas is not None
    ):
        return DYNAMIC_FEE
    if wanted.gas_price is None and prices.base_fee is not None:
        return DYNAMIC_FEE
    return ACCESS_LIST if wanted.access_list else LEGACY


def _read_data(given: Mapping[str, Any]) -> bytes:
    """Return the input, from `input` or `data`; if both are given, they must be equal."""
    found = {}
    for name in ("input", "data"):
        if name in given:
            try:
                found[name] = encoding.any_data(given[name])
            except ValueError as error:
                raise ValueError(f"{name}: expected hexadecimal data") from error
            if len(found[name]) > MAX_DATA_BYTES:
                raise ValueError(f"{name}: longer than {MAX_DATA_BYTES} bytes")
    if len(set(found.values())) > 1:
        raise ValueError("input: differs from data")
    return next(iter(found.values()), b"")


def _read_access_list(value: Any) -> AccessList:
    if not isinstance(value, list):
        raise ValueError("accessList: expected an array")
    entries = []
    for entry in value:
        keys = entry.get("storageKeys") if isinstance(entry, dict) else None
        if not isinstance(keys, list):
            raise ValueError("accessList: expected addresses, each with storageKeys")
        try:
            slots = tuple("0x" + encoding.hash32(key).hex() for key in keys)
        except ValueError as error:
            raise ValueError("accessList: a slot has 32 bytes") from error
        entries.append((_address(entry.get("address"), "accessList"), slots))
    if sum(1 + len(slots) for _, slots in entries) > MAX_ACCESS_LIST:
        raise ValueError(f"accessList: longer than {MAX_ACCESS_LIST} entries")
    return tuple(entries)


def _address(value: Any, name: str) -> str:
    try:
        return "0x" + encoding.address(value).hex()
    except ValueError as error:
        raise ValueError(f"{name}: expected an address") from error


def _quantity(
    given: Mapping[str, Any], name: str, most: int = 2**256 - 1
) -> int | None:
    value = given.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or not _QUANTITY.fullmatch(value):
        raise ValueError(f"{name}: expected a hexadecimal number")
    number = int(value, 16)
    if number > most:
        raise ValueError(f"{name}: is too high")
    return number
