"""Blocks whose gas is spent on the transactions themselves and on loading code."""

from __future__ import annotations

from typing import Any

from eth_typing import Address

from bench.worst_loads import CODE_LIMIT, STACK, Load, Options, load
from bench.worst_opcodes import SPREAD
from samples.assembler import assemble
from samples.builder import ChainBuilder
from samples.signers import Signer

TRANSFER_GAS = 21_000
ADDRESS_GAS, SLOT_GAS = 2400, 1900
"""Gas per entry of an access list: https://eips.ethereum.org/EIPS/eip-2930."""
ZERO_BYTE_FLOOR_GAS = 10
"""Floor gas per zero byte of call data: https://eips.ethereum.org/EIPS/eip-7623."""
AUTHORIZATION_GAS = 25_000
"""https://eips.ethereum.org/EIPS/eip-7702"""
CONTRACTS = 600
"""Contracts with 24 KiB of code each, 15 MB together. They differ in the byte after
STOP."""

_FIRST_CONTRACT = 0xC0DE_0000
_SPARE_GAS = 30_000
_STOP = assemble("STOP")


def _word(number: int) -> int:
    return SPREAD * number % 2**256


def _address(number: int) -> Address:
    return Address(_word(number).to_bytes(32, "big")[:20])


def _send_data(
    chain: ChainBuilder, sender: Signer, to: Address, gas: int, options: Options
) -> None:
    size = (gas - TRANSFER_GAS) // ZERO_BYTE_FLOOR_GAS
    chain.send(sender, to, bytes(size), gas=gas, **options)


def _send_slots(
    chain: ChainBuilder, sender: Signer, to: Address, gas: int, options: Options
) -> None:
    slots = [_word(number) for number in range((gas - _SPARE_GAS) // SLOT_GAS)]
    chain.send(sender, to, gas=gas, access_list=[(to, slots)], **options)


def _send_addresses(
    chain: ChainBuilder, sender: Signer, to: Address, gas: int, options: Options
) -> None:
    count = (gas - _SPARE_GAS) // ADDRESS_GAS
    access_list = [(_address(number), ()) for number in range(count)]
    chain.send(sender, to, gas=gas, access_list=access_list, **options)


def _send_authorizations(
    chain: ChainBuilder, sender: Signer, to: Address, gas: int, options: Options
) -> None:
    authorities = [
        Signer(f"worst authority {number}")
        for number in range((gas - _SPARE_GAS) // AUTHORIZATION_GAS)
    ]
    authorizations = [chain.authorize(authority, to) for authority in authorities]
    chain.send(sender, to, gas=gas, authorization_list=authorizations, **options)


def _send_transfers(
    chain: ChainBuilder, sender: Signer, to: Address, gas: int, options: Options
) -> None:
    for number in range(gas // TRANSFER_GAS):
        chain.send(sender, _address(number), gas=TRANSFER_GAS, value=1, **options)


def _long_contracts() -> dict[str, dict[str, Any]]:
    alloc = {}
    for number in range(CONTRACTS):
        code = b"\x00" + number.to_bytes(2, "big") + b"\x5b" * (CODE_LIMIT - 3)
        address = f"0x{_FIRST_CONTRACT + number:040x}"
        alloc[address] = {"balance": "0x0", "nonce": "0x1", "code": f"0x{code.hex()}"}
    return alloc


def _transaction(name: str, send: Any) -> Load:
    return Load("transactions", name, _STOP, frozenset(), send=send)


TRANSACTIONS = (
    _transaction("call data, floor price", _send_data),
    _transaction("access list, slots", _send_slots),
    _transaction("access list, accounts", _send_addresses),
    _transaction("authorizations", _send_authorizations),
    _transaction("transfers to new accounts", _send_transfers),
)
"""Each sends one transaction with all the gas, the last one many."""

COLD_CODE = load(
    "cold storage",
    "CALL of contracts of 24 KiB",
    "CALL",
    "PUSH0 PUSH0 PUSH0 PUSH0 PUSH0 DUP6 GAS CALL POP PUSH 1 ADD",
    setup=f"PUSH {_FIRST_CONTRACT}",
    gas=2640,
    prepares=STACK | {"GAS", "ADD"},
    alloc=_long_contracts(),
    gas_limit=CONTRACTS * 2600,
)

TRANSACTION_LOADS: tuple[Load, ...] = (*TRANSACTIONS, COLD_CODE)
