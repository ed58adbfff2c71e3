"""Movements of ether and tokens, and allowances, that a simulation's logs report.

A contract may emit logs that do not correspond to what it has done.
Source: ERC-20, ERC-721, ERC-1155; WETH9 for Deposit and Withdrawal; execution-apis
    src/eth/execute.yaml and EIP-7708 for the logs of ether
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from evm.addresses import SYSTEM_ADDRESS
from wallets.effects.words import array_at, numbers, to_address, topic

ETHER = "0x" + "ee" * 20
"""The address of logs that eth_simulateV1 adds for transfers of ether before Amsterdam."""

NOWHERE = "0x" + "00" * 20
"""The zero address: sender of new tokens, and receiver of destroyed ones."""

_PROTOCOL = "0x" + SYSTEM_ADDRESS.hex()
"""The address of the protocol's logs of transfers of ether, from Amsterdam on."""

_TRANSFER = topic("Transfer(address,address,uint256)")
_SINGLE = topic("TransferSingle(address,address,address,uint256,uint256)")
_BATCH = topic("TransferBatch(address,address,address,uint256[],uint256[])")
_DEPOSIT = topic("Deposit(address,uint256)")
_WITHDRAWAL = topic("Withdrawal(address,uint256)")
_APPROVAL = topic("Approval(address,address,uint256)")
_APPROVAL_FOR_ALL = topic("ApprovalForAll(address,address,bool)")


@dataclass(frozen=True, slots=True)
class Movement:
    """A transfer of ether or tokens.

    token: its contract in lower case, ETHER for ether.
    amount: in the smallest unit; 1 for a single token of an ERC-721 contract.
    number: of the token, for ERC-721 and ERC-1155.
    is_single: whether the contract has one token per number (ERC-721).
    """

    token: str
    sender: str
    receiver: str
    amount: int
    number: int | None = None
    is_single: bool = False


@dataclass(frozen=True, slots=True)
class Allowance:
    """The permission for an address to move tokens of an owner.

    amount: in the smallest unit; None for all tokens of the contract, now and later.
    number: of the one token of an ERC-721 contract.
    """

    token: str
    owner: str
    spender: str
    amount: int | None
    number: int | None = None


def read_logs(
    logs: Iterable[Mapping[str, Any]],
) -> tuple[list[Movement], list[Allowance]]:
    """Decode the log objects of a call. Logs of other events are left out."""
    movements: list[Movement] = []
    allowances: dict[tuple[object, ...], Allowance] = {}
    for log in logs:
        with suppress(ValueError, IndexError):
            for found in list(_read(log)):
                if isinstance(found, Movement):
                    movements.append(found)
                    continue
                key = found.token, found.owner, found.spender, found.number
                # A later allowance replaces an earlier one.
                allowances[(*key, found.amount is None)] = found
    return movements, list(allowances.values())


def _read(log: Mapping[str, Any]) -> Iterator[Movement | Allowance]:
    """Yield movements and allowances of a log. Raises: ValueError, IndexError."""
    topics, token = log["topics"], log["address"]
    if not topics:
        return
    indexed = [int(one, 16) for one in topics[1:]]
    data = numbers(bytes.fromhex(log["data"][2:]))
    match topics[0], len(indexed), len(data):
        case (topic0, 2, 1) if topic0 == _TRANSFER:
            sender, receiver = map(to_address, indexed)
            token = ETHER if token == _PROTOCOL else token
            yield Movement(token, sender, receiver, data[0])
        case (topic0, 3, 0) if topic0 == _TRANSFER:
            sender, receiver = map(to_address, indexed[:2])
            yield Movement(token, sender, receiver, 1, indexed[2], is_single=True)
        case (topic0, 3, 2) if topic0 == _SINGLE:
            sender, receiver = map(to_address, indexed[1:])
            yield Movement(token, sender, receiver, data[1], data[0])
        case (topic0, 3, _) if topic0 == _BATCH:
            sender, receiver = map(to_address, indexed[1:])
            ids, amounts = array_at(data, 0), array_at(data, 1)
            for number, amount in zip(ids, amounts, strict=True):
                yield Movement(token, sender, receiver, amount, number)
        case (topic0, 1, 1) if topic0 == _DEPOSIT:
            yield Movement(token, NOWHERE, to_address(indexed[0]), data[0])
        case (topic0, 1, 1) if topic0 == _WITHDRAWAL:
            yield Movement(token, to_address(indexed[0]), NOWHERE, data[0])
        case (topic0, 2, 1) if topic0 == _APPROVAL:
            owner, spender = map(to_address, indexed)
            yield Allowance(token, owner, spender, data[0])
        case (topic0, 3, 0) if topic0 == _APPROVAL:
            owner, spender = map(to_address, indexed[:2])
            is_taken = spender == NOWHERE
            yield Allowance(token, owner, spender, 0 if is_taken else 1, indexed[2])
        case (topic0, 2, 1) if topic0 == _APPROVAL_FOR_ALL:
            owner, spender = map(to_address, indexed)
            yield Allowance(token, owner, spender, None if data[0] else 0)
        case _:
            return
