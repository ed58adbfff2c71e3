"""Orders of Seaport, a marketplace contract for tokens of all kinds.

Source: https://github.com/ProjectOpenSea/seaport, docs/SeaportDocumentation.md and
    contracts/lib/ConsiderationStructs.sol
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from abi.erc20 import shifted
from wallets.signing.known.layouts import Layout, Reading, Separator, Summary
from wallets.signing.known.permits import other_owner
from wallets.signing.known.phrases import (
    ZERO_ADDRESS,
    Phrase,
    Sentence,
    Tokens,
    address,
    amount_of,
    deadline_note,
    is_endless,
    listed,
    moment,
    of_account,
    sentence,
    strong,
    token_name,
    until,
)

_DEPLOYMENTS = (
    ("1.1", "0x00000000006c3852cbef3e08e8df289169ede581"),
    ("1.4", "0x00000000000001ad428e4906ae43d8f9852d0dd6"),
    ("1.5", "0x00000000000000adc04c56bf30ac9d3c0aaf14dc"),
    ("1.6", "0x0000000000000068f116a894984e2db1123eb395"),
)
"""Versions with their addresses, which are the same on every chain (CREATE2)."""

_NATIVE, _ERC20, _ERC721, _ERC1155, _ERC721_CRITERIA, _ERC1155_CRITERIA = range(6)
_PARTIAL_OPEN, _FULL_RESTRICTED, _PARTIAL_RESTRICTED = 1, 2, 3
"""Types of items and of orders."""

_ETHER = 18


def _describe(reading: Reading) -> Summary | None:
    order = reading.message
    offer, wanted = order["offer"], order["consideration"]
    items = [*offer, *wanted]
    if order["orderType"] > _PARTIAL_RESTRICTED or None in items:
        return None
    if any(item["itemType"] > _ERC1155_CRITERIA for item in items):
        return None
    owner = of_account(order["offerer"], reading.signer)
    main = sentence(
        "Lets {} take {} from {}{} in exchange for {}{}{}.",
        _takers(order),
        _goods(offer, reading.tokens),
        owner,
        " in parts"
        if order["orderType"] in (_PARTIAL_OPEN, _PARTIAL_RESTRICTED)
        else "",
        _payments(wanted, order["offerer"], reading),
        _since(order["startTime"], reading.now),
        until(order["endTime"], reading.now),
    )
    warnings = other_owner(order["offerer"], reading.signer)
    if offer and not any(_is_gain(one, order["offerer"]) for one in wanted):
        text = "In exchange, {} receives {}."
        warnings = (*warnings, sentence(text, owner, strong("nothing")))
    start, end = order["startTime"], order["endTime"]
    notes = {"endTime": deadline_note(end, reading.now)}
    notes["startTime"] = "never" if is_endless(start) else moment(start)
    for name in ("offer", "consideration"):
        for number, item in enumerate(order[name]):
            notes[f"{name}/{number}/itemType"] = _TYPES[item["itemType"]]
    return Summary(main, warnings=warnings, notes=notes)


def _is_gain(item: Mapping[str, Any], offerer: str) -> bool:
    """Return whether an item of the consideration gives the offerer anything."""
    amounts = item["startAmount"], item["endAmount"]
    return bool(item["recipient"] == offerer and any(amounts))


_TYPES = ("ether", "ERC-20", "ERC-721", "ERC-1155", "any ERC-721", "any ERC-1155")


def _takers(order: Mapping[str, Any]) -> Sentence:
    if order["orderType"] >= _FULL_RESTRICTED:
        return sentence("anyone approved by {}", address(order["zone"]))
    return (strong("anyone"),)


def _goods(items: Sequence[Mapping[str, Any]], tokens: Tokens) -> Sentence:
    if not items:
        return (strong("nothing"),)
    return listed([_item(item, tokens) for item in items])


def _payments(
    items: Sequence[Mapping[str, Any]], offerer: str, reading: Reading
) -> Sentence:
    """Return the payments, each with its recipient."""
    if not items:
        return (strong("nothing"),)
    return listed(
        [
            (
                *_item(item, reading.tokens),
                Phrase(" to "),
                *of_account(item["recipient"], reading.signer),
            )
            for item in items
        ]
    )


def _item(item: Mapping[str, Any], tokens: Tokens) -> Sentence:
    """Return an item as text, such as `1.5 ether` or `ID 7 of token 0x…`."""
    kind, token = item["itemType"], item["token"]
    start, end = item["startAmount"], item["endAmount"]
    if kind == _NATIVE:
        return _range(start, end, lambda n: (strong(f"{shifted(n, _ETHER)} ether"),))
    if kind == _ERC20:
        return _range(start, end, lambda n: amount_of(n, token, tokens))
    number = item["identifierOrCriteria"]
    name = token_name(token, tokens)
    if kind in (_ERC721, _ERC1155):
        which = sentence("ID {} of {}", strong(str(number)), name)
    elif number == 0:
        which = sentence("{} of {}", strong("any ID"), name)
    else:
        which = sentence("one of certain IDs of {}", name)
    if start == end == 1:
        return which
    return (*_range(start, end, lambda n: (strong(f"{n:,} ×"),)), Phrase(" "), *which)


def _range(start: int, end: int, shown: Any) -> Sentence:
    """Return an amount that may change from the start of the order to its end."""
    if start == end:
        found: Sentence = shown(start)
        return found
    return sentence("{} at first and {} at the end", shown(start), shown(end))


def _since(start: int, now: float) -> Sentence:
    if start <= now:
        return ()
    text = "never" if is_endless(start) else moment(start)
    return sentence(", not before {} and", strong(text))


def _tokens_of(message: Mapping[str, Any], _: str) -> Iterable[str]:
    items = [*message["offer"], *message["consideration"]]
    return [
        item["token"]
        for item in items
        if item is not None and item["token"] != ZERO_ADDRESS
    ]


SEAPORT_ORDERS = (
    Layout(
        title="Offer on a marketplace (Seaport order)",
        encoded="OrderComponents(address offerer,address zone,OfferItem[] offer,"
        "ConsiderationItem[] consideration,uint8 orderType,uint256 startTime,"
        "uint256 endTime,bytes32 zoneHash,uint256 salt,bytes32 conduitKey,"
        "uint256 counter)ConsiderationItem(uint8 itemType,address token,"
        "uint256 identifierOrCriteria,uint256 startAmount,uint256 endAmount,"
        "address recipient)OfferItem(uint8 itemType,address token,"
        "uint256 identifierOrCriteria,uint256 startAmount,uint256 endAmount)",
        describe=_describe,
        tokens_of=_tokens_of,
        values=tuple(
            {"name": "Seaport", "version": version, "verifyingContract": contract}
            for version, contract in _DEPLOYMENTS
        ),
        separator=Separator("information()", word=1),
    ),
)
