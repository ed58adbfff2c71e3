"""A transaction's effects, as eth_simulateV1 executes it after the newest block.

It is executed twice: first alone, exactly as it would be in the next block; then between
calls that read the account's balances, of the tokens that the first execution has moved.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from eth_hash.auto import keccak

from nodeapi.tokens import Token
from wallets.effects.contracts import named_token, read_call, returned, token_calls
from wallets.effects.movements import (
    ETHER,
    Allowance,
    Movement,
    read_logs,
)
from wallets.effects.words import address_word, number_word, selector
from wallets.signing.known.phrases import Token
from wallets.signing.transactions import Transaction, access_list_json
from wallets.upstream import ChainNode, UpstreamRefused

MAX_ASSETS = 8
"""Tokens whose balances are read."""

_READER = "0x" + keccak(b"portcullis: reads its caller's balance")[:20].hex()
_READER_CODE = "0x333160005260206000f3"
"""CALLER, BALANCE, and the return of that word. The simulation puts it at an address that
nobody has, because no method tells a balance between two simulated blocks."""

_REJECTED = frozenset({*range(-38015, -38009), -38025})
"""Codes of a transaction that no block can include: its nonce, funds, gas or code.
Source: go-ethereum internal/ethapi/errors.go, `txValidationError`"""

_MAX_REASON = 300


@dataclass(frozen=True, slots=True)
class Asset:
    """Ether, or a token of which an account can have a balance.

    token: as in `Movement`. number: for ERC-1155, else None.
    """

    token: str
    number: int | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """An account's balance before and after the transaction, without its fee."""

    asset: Asset
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class Effects:
    """What a transaction would do after a block.

    block: number of that block, None if the transaction could not be executed.
    failure: why it would fail, as text of the contract or of this service; "" otherwise.
    is_included: whether a block could include it although it fails.
    movements, allowances: as its logs report them.
    changes: of the sender's balances; None if they could not be read.
    unread: number of assets that moved, whose balances are not among `changes`.
    tokens: symbols and decimals, by address.
    """

    block: int | None
    failure: str = ""
    is_included: bool = True
    movements: Sequence[Movement] = ()
    allowances: Sequence[Allowance] = ()
    changes: Sequence[Change] | None = None
    unread: int = 0
    tokens: Mapping[str, Token] | None = None


async def simulate(node: ChainNode, sender: str, transaction: Transaction) -> Effects:
    """Return the effects of a transaction, without changes of balances.

    sender: in lower case.
    Raises: UpstreamUnavailable, UpstreamRefused if it could not be simulated.
    """
    call = _call(sender, transaction)
    payload = {"blockStateCalls": [{"calls": [call]}], "traceTransfers": True}
    try:
        (block,) = await node.call("eth_simulateV1", payload, "latest")
    except UpstreamRefused as error:
        if error.code not in _REJECTED:
            raise
        return Effects(None, error.message[:_MAX_REASON], is_included=False)
    (result,) = block["calls"]
    number = int(block["number"], 16) - 1
    if int(result["status"], 16) != 1:
        return Effects(number, str(result["error"]["message"])[:_MAX_REASON])
    movements, allowances = read_logs(result["logs"])
    return Effects(number, movements=movements, allowances=allowances)


async def with_balances(
    node: ChainNode, sender: str, transaction: Transaction, effects: Effects
) -> Effects:
    """Return effects with the sender's balances before and after, and tokens' names.

    Raises: UpstreamUnavailable, UpstreamRefused if they could not be read.
    """
    moved = _moved(sender, effects)
    assets = _assets(transaction, moved)
    named = dict.fromkeys(_contracts(effects, assets))
    contracts = list(named)[:MAX_ASSETS]
    reads = [_balance_call(sender, asset) for asset in assets]
    names = [call for contract in contracts for call in token_calls(contract)]
    payload = {
        "blockStateCalls": [
            {"stateOverrides": {_READER: {"code": _READER_CODE}}, "calls": reads},
            {"calls": [_call(sender, transaction)]},
            {"calls": reads + names},
        ]
    }
    before, at, after = await node.call("eth_simulateV1", payload, "latest")
    if int(at["calls"][0]["status"], 16) != 1:
        raise UpstreamUnavailable("the second execution differs from the first one")
    said = after["calls"][len(reads) :]
    tokens = {
        contract: named_token(*said[2 * place : 2 * place + 2])
        for place, contract in enumerate(contracts)
    }
    changes = []
    for asset, *results in zip(assets, before["calls"], after["calls"], strict=False):
        words = [returned(result) for result in results]
        if all(len(word) == 32 for word in words):
            changes.append(Change(asset, *map(int.from_bytes, words)))
    read = {change.asset for change in changes}
    unread = sum(asset not in read for asset in moved)
    return replace(effects, changes=changes, unread=unread, tokens=tokens)


def _call(sender: str, transaction: Transaction) -> dict[str, Any]:
    """Return a transaction as a call without price, so that the fee is left out."""
    call: dict[str, Any] = {
        "from": sender,
        "value": hex(transaction.value),
        "gas": hex(transaction.gas),
        "input": "0x" + transaction.data.hex(),
    }
    if transaction.to is not None:
        call["to"] = transaction.to
    if transaction.access_list:
        call["accessList"] = access_list_json(transaction.access_list)
    return call


def _moved(sender: str, effects: Effects) -> list[Asset]:
    """Return ether and the tokens that moved from or to the sender, each once.

    What has left the account comes first, because any contract can report movements of
    further tokens to it.
    """
    own = [one for one in effects.movements if sender in (one.sender, one.receiver)]
    found = [Asset(ETHER)]
    for movement in sorted(own, key=lambda one: one.sender != sender):
        number = None if movement.is_single else movement.number
        found.append(Asset(movement.token, number))
    return list(dict.fromkeys(found))


def _assets(transaction: Transaction, moved: Sequence[Asset]) -> list[Asset]:
    """Return the assets whose balances may change, ether first, at most MAX_ASSETS.

    The called contract may be a token that logs nothing.
    """
    found = [*moved]
    if transaction.to is not None and transaction.data:
        found.append(Asset(transaction.to))
    return list(dict.fromkeys(found))[:MAX_ASSETS]


def _contracts(effects: Effects, assets: Iterable[Asset]) -> list[str]:
    """Return the tokens that the page names."""
    named = [
        *(asset.token for asset in assets),
        *(allowance.token for allowance in effects.allowances),
        *(movement.token for movement in effects.movements),
    ]
    return [token for token in named if token != ETHER]


def _balance_call(owner: str, asset: Asset) -> dict[str, str]:
    if asset.token == ETHER:
        return read_call(_READER, "", sender=owner)
    if asset.number is None:
        data = selector("balanceOf(address)") + address_word(owner)
    else:
        data = selector("balanceOf(address,uint256)") + address_word(owner)
        data += number_word(asset.number)
    return read_call(asset.token, data, sender=owner)
