"""Describes the simulated effects of a transaction for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from abi.erc20 import shifted
from legible.words import printable
from wallets.effects.movements import ETHER, NOWHERE, Allowance, Movement
from wallets.effects.simulation import (
    Change,
    Effects,
    simulate,
    with_balances,
)
from wallets.nodes.page_node import PageNode
from wallets.signing.known.phrases import (
    Phrase,
    Sentence,
    Tokens,
    address,
    allowance_of,
    amount_of,
    of_account,
    sentence,
    strong,
    token_name,
)
from wallets.signing.transactions import Transaction
from wallets.upstream import ChainNode

SIMULATION_SECONDS = 5.0
"""Time limit of the execution of a transaction."""

BALANCES_SECONDS = 4.0
"""Time limit of the second execution, which reads balances."""

MAX_LINES = 30
"""Movements and allowances that a page shows."""


@dataclass(frozen=True, slots=True)
class ShownEffects:
    """The effects of a transaction as sentences.

    block: the number of the block after which it was simulated, None if no block could
        include it.
    failure: why the transaction would fail, "" if it would not.
    fee: in ether.
    changes: the balances of the account, None if they are unknown.
    unread: number of tokens that moved, whose balances are unknown.
    hidden: number of movements and allowances that are not shown.
    has_symbols: whether names of tokens are shown.
    """

    block: int | None
    failure: str
    fee: str
    changes: list[Sentence] | None
    unread: int
    movements: list[Sentence]
    allowances: list[Sentence]
    hidden: int
    has_symbols: bool


def effects_of(
    transaction: Transaction, scope: str, sender: str, node: PageNode | None
) -> ShownEffects | None:
    """Return a transaction's effects, None if they could not be simulated in time.

    scope: of the network. sender: in lower case.
    """
    if node is None:
        return None

    async def first(nodes: Mapping[str, ChainNode]) -> Effects | None:
        if scope not in nodes:
            return None
        return await simulate(nodes[scope], sender, transaction)

    effects = node.ask([scope], first, SIMULATION_SECONDS)
    if effects is None:
        return None
    base = effects.base
    if base is None or effects.failure:
        return shown(effects, sender)

    async def second(nodes: Mapping[str, ChainNode]) -> Effects:
        if scope not in nodes:  # a network that was retired in between
            return effects
        return await with_balances(nodes[scope], sender, transaction, effects, base)

    return shown(node.ask([scope], second, BALANCES_SECONDS) or effects, sender)


def shown(effects: Effects, sender: str) -> ShownEffects:
    """Describe effects for the account that sends the transaction."""
    tokens = effects.tokens or {}
    # Outgoing assets first, then incoming ones.
    moved = sorted(
        effects.movements,
        key=lambda one: (one.sender != sender, one.receiver != sender),
    )
    given = [one for one in effects.allowances if one.owner == sender]
    lines = [_movement(one, sender, tokens) for one in moved[:MAX_LINES]]
    allowances = [_allowance(one, tokens) for one in given[:MAX_LINES]]
    changes = None
    if effects.changes is not None:
        changed = (one for one in effects.changes if one.before != one.after)
        changes = [_change(one, tokens) for one in changed]
    return ShownEffects(
        block=None if effects.base is None else effects.base.number,
        failure=printable(effects.failure),
        fee=shifted(effects.fee, 18),
        changes=changes,
        unread=effects.unread,
        movements=lines,
        allowances=allowances,
        hidden=len(moved) + len(given) - len(lines) - len(allowances),
        has_symbols=any(token.symbol for token in tokens.values()),
    )


def _movement(moved: Movement, sender: str, tokens: Tokens) -> Sentence:
    goods = _goods(moved, tokens)
    giver, taker = moved.sender, moved.receiver
    if giver == NOWHERE:
        return sentence("{} to {}, newly minted", goods, of_account(taker, sender))
    if taker == NOWHERE:
        return sentence("{} from {}, burned", goods, of_account(giver, sender))
    return sentence(
        "{} from {} to {}", goods, of_account(giver, sender), of_account(taker, sender)
    )


def _goods(moved: Movement, tokens: Tokens) -> Sentence:
    if moved.token == ETHER:
        return (strong(f"{shifted(moved.amount, 18)} ether"),)
    if moved.number is None:
        return amount_of(moved.amount, moved.token, tokens)
    return _numbered(moved.token, moved.number, moved.amount, tokens)


def _numbered(token: str, number: int, amount: int, tokens: Tokens) -> Sentence:
    """Return tokens of a contract with several kinds: `2 × ID 7 of token 0x…`."""
    times = "" if amount == 1 else f"{amount:,} × "
    which = strong(f"{times}ID {number}")
    return sentence("{} of {}", which, token_name(token, tokens))


def _allowance(given: Allowance, tokens: Tokens) -> Sentence:
    spender, name = address(given.spender), token_name(given.token, tokens)
    if given.amount is None:
        text = "{} may move {} of {} in this account, including future ones"
        return sentence(text, spender, strong("all tokens"), name)
    if given.number is not None and given.amount:
        which = _numbered(given.token, given.number, 1, tokens)
        return sentence("{} may move {}", spender, which)
    if not given.amount:
        return sentence("{} can no longer move {}", spender, name)
    allowed = allowance_of(given.amount, given.token, tokens)
    return sentence("{} may move {}", spender, allowed)


def _change(change: Change, tokens: Tokens) -> Sentence:
    """Return a change of a balance: `−1.5 ether, new balance 8.5 ether`."""
    asset, difference = change.asset, change.after - change.before
    sign, amount = "+" if difference > 0 else "−", abs(difference)
    if asset.token == ETHER:
        what: Iterable[Phrase] = (strong(f"{shifted(amount, 18)} ether"),)
        left = f", new balance {shifted(change.after, 18)} ether"
    elif asset.number is not None:
        what = _numbered(asset.token, asset.number, amount, tokens)
        left = f", new balance {change.after:,}"
    else:
        what = amount_of(amount, asset.token, tokens)
        decimals = tokens[asset.token].decimals if asset.token in tokens else None
        left = f", new balance {shifted(change.after, decimals or 0)}"
    first, *rest = what
    return (Phrase(sign + first.text, first.kind), *rest, Phrase(left))
