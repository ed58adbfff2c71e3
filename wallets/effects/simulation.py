"""A transaction's effects, as eth_simulateV1 executes it after the newest block.

It is executed twice as the first transaction of the next block: first alone, then followed
by calls that read the account's balances, of the tokens that the first execution has moved.
The balances before are read in the same way, after a next block without the transaction.

A malicious contract could detect a simulation and behave differently. Therefore the
transaction and the calls pay for their gas, the blocks have a base fee, a random PREVRANDAO
and a random root of a beacon block (EIP-4788), and nothing else is executed before the
transaction. The calls before and after it have equal senders, prices and blocks.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from eth_hash.auto import keccak

from abi.erc20 import Token, shifted
from nodeapi.upstreams.errors import UpstreamUnavailable
from wallets.effects.contracts import named_token, read_call, returned, token_calls
from wallets.effects.movements import (
    ETHER,
    Allowance,
    Movement,
    read_logs,
)
from wallets.effects.words import address_word, number_word, selector
from wallets.signing.transactions import DYNAMIC_FEE, Transaction, access_list_json
from wallets.upstream import ChainNode, UpstreamRefused

GWEI = 10**9

MAX_ASSETS = 8
"""Tokens whose balances are read."""

_SECRET = secrets.token_bytes(32)
"""Makes addresses in the simulations of this process unpredictable for contracts."""

_READER = "0x" + keccak(_SECRET + b"reader")[:20].hex()
_READER_CODE = "0x60003531" + "60005260206000f3"
"""Returns the balance of the address in the input, because no method returns a balance
between two simulated blocks."""

_PAYER = "0x" + keccak(_SECRET + b"payer")[:20].hex()
"""Makes the calls that read balances, and pays for them."""

_REJECTED = frozenset({*range(-38015, -38009), -38025})
"""Codes of a transaction that no block can include: its nonce, funds, gas or code.
Source: go-ethereum internal/ethapi/errors.go, `txValidationError`"""

_INSUFFICIENT_FUNDS = -38014

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
class Base:
    """The newest block, after which a transaction is simulated.

    base_fee: of the next block in wei, 0 without one.
    """

    number: int
    hash: str
    base_fee: int = 0

    @property
    def place(self) -> dict[str, str]:
        """The block parameter."""
        return {"blockHash": self.hash}

    def block(
        self, calls: Sequence[Mapping[str, Any]], *, distance: int = 1
    ) -> dict[str, Any]:
        """Return a following block, with some calls, for eth_simulateV1.

        distance: number of the block, from this one's on. The base fee of the second
            block is that of the first one, whatever the first one contains.
        """
        seed = _SECRET + bytes.fromhex(self.hash[2:]) + bytes([distance])
        overrides = {
            "prevRandao": "0x" + keccak(seed + b"randao").hex(),
            "beaconRoot": "0x" + keccak(seed + b"beacon").hex(),
        }
        if distance > 1 and self.base_fee:
            overrides["baseFeePerGas"] = hex(self.base_fee)
        return {"blockOverrides": overrides, "calls": calls}


@dataclass(frozen=True, slots=True)
class Effects:
    """The effects that a transaction would have after a block.

    base: that block, None if no block could include the transaction.
    failure: why it would fail, as text of the contract or of this service; "" otherwise.
    fee: in wei, paid also if it fails.
    movements, allowances: as its logs report them.
    changes: of the sender's balances; None if they could not be read.
    unread: number of assets that moved, whose balances are not among `changes`.
    tokens: symbols and decimals, by address.
    """

    base: Base | None
    failure: str = ""
    fee: int = 0
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
    head = await node.call("eth_getBlockByNumber", "latest", False)
    if not isinstance(head, dict) or not head.keys() >= {"number", "hash"}:
        raise UpstreamUnavailable("no newest block")
    base = Base(int(head["number"], 16), head["hash"])
    payload = {
        "blockStateCalls": [base.block([_call(sender, transaction)])],
        "traceTransfers": True,
        "validation": True,
    }
    try:
        (block,) = await node.call("eth_simulateV1", payload, base.place)
    except UpstreamRefused as error:
        if error.code not in _REJECTED:
            raise
        if error.code == _INSUFFICIENT_FUNDS:
            return Effects(None, await _shortfall(node, sender, transaction, base))
        return Effects(None, error.message[:_MAX_REASON])
    (result,) = block["calls"]
    base = replace(base, base_fee=int(block.get("baseFeePerGas") or "0x0", 16))
    fee = int(result["gasUsed"], 16) * _price(transaction, base.base_fee)
    if int(result["status"], 16) != 1:
        return Effects(base, str(result["error"]["message"])[:_MAX_REASON], fee)
    movements, allowances = read_logs(result["logs"])
    return Effects(base, fee=fee, movements=movements, allowances=allowances)


async def with_balances(
    node: ChainNode,
    sender: str,
    transaction: Transaction,
    effects: Effects,
    base: Base,
) -> Effects:
    """Return effects with the sender's balances before and after, and tokens' names.

    base: the block after which the effects were found.
    Raises: UpstreamUnavailable, UpstreamRefused if they could not be read.
    """
    moved = _moved(sender, effects)
    assets = _assets(transaction, moved)
    named = dict.fromkeys(_contracts(effects, assets))
    contracts = list(named)[:MAX_ASSETS]
    reads = [_balance_call(sender, asset) for asset in assets]
    names = [call for contract in contracts for call in token_calls(contract)]
    price = {"from": _PAYER, "gasPrice": hex(base.base_fee + GWEI)}
    helpers = {_READER: {"code": _READER_CODE}, _PAYER: {"balance": hex(2**160)}}

    async def block_after(
        first: list[dict[str, Any]], calls: list[dict[str, str]]
    ) -> Any:
        """Return the second block: calls after a next block with other calls."""
        blocks = [
            base.block(first) | {"stateOverrides": helpers},
            base.block([call | price for call in calls], distance=2),
        ]
        payload = {"blockStateCalls": blocks, "validation": True}
        _, found = await node.call("eth_simulateV1", payload, base.place)
        return found

    before, after = await asyncio.gather(
        block_after([], reads),
        block_after([_call(sender, transaction)], reads + names),
    )
    said = after["calls"][len(reads) :]
    tokens = {
        contract: named_token(*said[2 * place : 2 * place + 2])
        for place, contract in enumerate(contracts)
    }
    changes = []
    for asset, *results in zip(assets, before["calls"], after["calls"], strict=False):
        words = [returned(result) for result in results]
        if all(len(word) == 32 for word in words):
            old, new = map(int.from_bytes, words)
            fee = effects.fee if asset.token == ETHER else 0
            changes.append(Change(asset, old, new + fee))
    read = {change.asset for change in changes}
    unread = sum(asset not in read for asset in moved)
    return replace(effects, changes=changes, unread=unread, tokens=tokens)


async def _shortfall(
    node: ChainNode, sender: str, transaction: Transaction, base: Base
) -> str:
    """Say what an account lacks that can't pay for a transaction."""
    balance = int(await node.call("eth_getBalance", sender, base.place), 16)
    has, needs = shifted(balance, 18), shifted(transaction.max_cost, 18)
    return (
        f"insufficient funds. The account has {has} ether, and the transaction needs "
        f"up to {needs} ether for its value and fee"
    )


def _call(sender: str, transaction: Transaction) -> dict[str, Any]:
    """Return a transaction as a call, with the account's next nonce."""
    call: dict[str, Any] = {
        "from": sender,
        "value": hex(transaction.value),
        "gas": hex(transaction.gas),
        "input": "0x" + transaction.data.hex(),
    }
    if transaction.to is not None:
        call["to"] = transaction.to
    if transaction.type == DYNAMIC_FEE:
        call["maxFeePerGas"] = hex(transaction.max_fee_per_gas)
        call["maxPriorityFeePerGas"] = hex(transaction.max_priority_fee_per_gas)
    else:
        call["gasPrice"] = hex(transaction.max_fee_per_gas)
    if transaction.access_list:
        call["accessList"] = access_list_json(transaction.access_list)
    return call


def _price(transaction: Transaction, base_fee: int) -> int:
    """Return the price per gas that a transaction pays."""
    most = transaction.max_fee_per_gas
    return min(most, base_fee + transaction.max_priority_fee_per_gas)


def _moved(sender: str, effects: Effects) -> list[Asset]:
    """Return ether and the tokens that moved from or to the sender, each once.

    Outgoing assets come first, because any contract can report movements of further tokens
    to the account.
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
        return read_call(_READER, address_word(owner))
    if asset.number is None:
        data = selector("balanceOf(address)") + address_word(owner)
    else:
        data = selector("balanceOf(address,uint256)") + address_word(owner)
        data += number_word(asset.number)
    return read_call(asset.token, data)
