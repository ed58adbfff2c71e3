"""Transfers of a transaction, as its logs report them.

From Amsterdam on, the protocol logs every transfer of ether (EIP-7708). Contracts choose
what they log. A transfer is shown for each log in the form of ERC-20, ERC-721 or ERC-1155,
even if the contract has moved no tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from abi.addresses import checksummed
from abi.decoding import decode_log
from abi.erc20 import UNKNOWN, Token, shifted
from abi.selectors import event_of
from abi.values import Value
from evm.addresses import SYSTEM_ADDRESS
from explorer.logs import ReceiptLog
from legible import words

MAX_TRANSFERS = 100
"""Transfers that a page shows."""

_ETHER = "ether"
"""In place of a token's standard."""
_NOBODY = bytes(20)
"""Sender of new tokens, and receiver of destroyed ones."""


@dataclass(frozen=True, slots=True)
class Transfer:
    """A transfer, formatted as text."""

    contract: bytes
    token: str
    """Address of the contract, with a checksum, as are `sender` and `receiver`."""
    standard: str
    """Such as `ERC-20`, or `ether`."""
    sender: str
    receiver: str
    kind: str
    """`minted`, `burned` or empty."""
    units: int | None
    """In the token's smallest unit; None for a token of ERC-721."""
    token_id: str
    """Empty for a token of ERC-20."""
    name: Token = UNKNOWN
    """Symbol and decimals of an ERC-20 token; UNKNOWN if they were not read."""

    @property
    def is_ether(self) -> bool:
        """Whether ether was transferred, according to a log of the protocol (EIP-7708)."""
        return self.standard == _ETHER

    @property
    def amount(self) -> str:
        """In whole tokens if the decimals are known; empty for a token of ERC-721."""
        if self.units is None:
            return ""
        if self.is_ether:
            return words.ether(self.units)
        if self.name.decimals is None:
            return words.number(self.units)
        return shifted(self.units, self.name.decimals)

    @property
    def note(self) -> str:
        """About the unit of an ERC-20 token's amount; may be empty."""
        if self.units is None or self.token_id or self.is_ether:
            return ""
        if self.name.decimals is None:
            return "in the smallest unit"
        units = words.number(self.units)
        return "" if units == self.amount else f"{units} in the smallest unit"


@dataclass(frozen=True, slots=True)
class Transfers:
    """The first transfers. hidden: whether there are further ones."""

    lines: list[Transfer]
    hidden: bool

    @property
    def contracts(self) -> list[bytes]:
        """The contracts of ERC-20 tokens, each once."""
        found = (
            one.contract for one in self.lines if not one.token_id and not one.is_ether
        )
        return list(dict.fromkeys(found))

    def named(self, tokens: Mapping[bytes, Token]) -> Transfers:
        """Return the transfers with the symbols and decimals of ERC-20 tokens."""
        lines = [
            one
            if one.token_id or one.is_ether
            else replace(one, name=tokens.get(one.contract, UNKNOWN))
            for one in self.lines
        ]
        return replace(self, lines=lines)

    @property
    def has_names(self) -> bool:
        """Whether a contract reports a symbol or decimals."""
        return any(one.name != UNKNOWN for one in self.lines)


def transfers_of(logs: Sequence[ReceiptLog]) -> Transfers:
    """Return the transfers that logs report, in their order."""
    found = (transfer for log in logs for transfer in _of_log(log))
    shown = list(islice(found, MAX_TRANSFERS))
    return Transfers(shown, next(found, None) is not None)


def _of_log(log: ReceiptLog) -> Iterator[Transfer]:
    if not log.topics or not event_of(log.topics[0]):
        return
    # Uploaded definitions have no influence: they may name anything a transfer.
    decoded = decode_log(log.topics, log.data, most=3 * MAX_TRANSFERS)
    if decoded is None:
        return
    values = {one.name: one.value for one in decoded.arguments}
    standard = decoded.interfaces[0]
    match standard, decoded.name:
        case "ERC-20", "Transfer":
            if log.address == SYSTEM_ADDRESS:
                standard = _ETHER
            yield _transfer(log, standard, values, amount=values["amount"])
        case "ERC-721", "Transfer":
            yield _transfer(log, standard, values, token_id=values["tokenId"])
        case "ERC-1155", "TransferSingle":
            number, amount = values["id"], values["amount"]
            yield _transfer(log, standard, values, amount=amount, token_id=number)
        case "ERC-1155", "TransferBatch":
            for number, amount in zip(
                _items(values["ids"]), _items(values["amounts"]), strict=False
            ):
                yield _transfer(log, standard, values, amount=amount, token_id=number)


def _items(value: Value) -> list[Value]:
    """Return the values of an array's items."""
    return [one.value for one in value] if isinstance(value, tuple) else []


def _transfer(
    log: ReceiptLog,
    standard: str,
    values: Mapping[str, Value],
    amount: Value | None = None,
    token_id: Value | None = None,
) -> Transfer:
    sender, receiver = values["from"], values["to"]
    assert isinstance(sender, bytes)
    assert isinstance(receiver, bytes)
    kind = "minted" if sender == _NOBODY else "burned" if receiver == _NOBODY else ""
    return Transfer(
        contract=log.address,
        token=checksummed(log.address),
        standard=standard,
        sender=checksummed(sender),
        receiver=checksummed(receiver),
        kind=kind,
        units=amount if isinstance(amount, int) else None,
        token_id=str(token_id) if isinstance(token_id, int) else "",
    )
