"""Sentences with emphasized parts, and the wording of addresses, amounts and times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from abi.addresses import checksummed
from abi.erc20 import UNKNOWN, Token, shifted

ZERO_ADDRESS = "0x" + "00" * 20

_LAST_SECOND = 253_402_300_799
"""The end of the year 9999. Contracts compare with the time of a block."""


class Kind(StrEnum):
    """How a part of a sentence is shown."""

    TEXT = ""
    ADDRESS = "address"
    STRONG = "strong"


@dataclass(frozen=True, slots=True)
class Phrase:
    """A part of a sentence. title: shown when it is pointed at; may be empty."""

    text: str
    kind: Kind = Kind.TEXT
    title: str = ""


Sentence = tuple[Phrase, ...]


Tokens = Mapping[str, Token]
"""Tokens by address, in lower case. Contracts that were not read are missing."""


def sentence(pattern: str, *parts: str | Phrase | Sentence) -> Sentence:
    """Return a sentence: each `{}` of the pattern is replaced by the next part."""
    texts = pattern.split("{}")
    phrases = [Phrase(texts[0])]
    for part, text in zip(parts, texts[1:], strict=True):
        if isinstance(part, str):
            part = (Phrase(part),)
        elif isinstance(part, Phrase):
            part = (part,)
        phrases += [*part, Phrase(text)]
    return tuple(phrase for phrase in phrases if phrase.text)


def plain(phrases: Sentence) -> str:
    """Return a sentence as text."""
    return "".join(phrase.text for phrase in phrases)


def listed(parts: list[Sentence]) -> Sentence:
    """Join parts: `a, b and c`."""
    found: list[Phrase] = []
    for number, part in enumerate(parts):
        if number:
            found.append(Phrase(" and " if number == len(parts) - 1 else ", "))
        found += part
    return tuple(found)


def strong(text: str) -> Phrase:
    """Return an emphasized part of a sentence."""
    return Phrase(text, Kind.STRONG)


def address(value: str) -> Phrase:
    """Return an address with the checksum of EIP-55."""
    return Phrase(checksummed(bytes.fromhex(value[2:])), Kind.ADDRESS)


def of_account(value: str, signer: str) -> Sentence:
    """Return `this account` for the account that signs, else the address."""
    if value == signer:
        return (Phrase("this account"),)
    return (address(value),)


def is_unlimited(amount: int, bits: int = 256) -> bool:
    """Return whether an allowance is as good as unlimited.

    bits: width of the amount's type. The upper half of its range is more than any token's
        supply, and contracts do not reduce the highest value.
    """
    return amount >> (bits - 1) > 0


def token_name(token: str, tokens: Tokens) -> Sentence:
    """Return a token's address, after the name that its contract gives."""
    symbol = tokens.get(token, UNKNOWN).symbol
    if not symbol:
        return (Phrase("token "), address(token))
    return (strong(f"“{symbol}”"), Phrase(" (token "), address(token), Phrase(")"))


def amount_of(amount: int, token: str, tokens: Tokens) -> Sentence:
    """Return an exact amount with its token: `1.5 “ABC” (token 0x…)`."""
    decimals = tokens.get(token, UNKNOWN).decimals
    name = token_name(token, tokens)
    if decimals is None:
        units = "smallest unit" if amount == 1 else "smallest units"
        return (strong(f"{amount:,}"), Phrase(f" {units} of "), *name)
    of = " of " if name[0].kind == Kind.TEXT else " "
    exact = f"{amount:,} in the smallest unit"
    return (Phrase(shifted(amount, decimals), Kind.STRONG, exact), Phrase(of), *name)


def allowance_of(amount: int, token: str, tokens: Tokens, bits: int = 256) -> Sentence:
    """Return `up to 1.5 “ABC” (token 0x…)`, or `an unlimited amount of …`."""
    if is_unlimited(amount, bits):
        name = token_name(token, tokens)
        return (Phrase("an "), strong("unlimited"), Phrase(" amount of "), *name)
    return (Phrase("up to "), *amount_of(amount, token, tokens))


def moment(seconds: int) -> str:
    """Return Unix seconds as a time in UTC, or `the year 10,000 or later`."""
    if seconds > _LAST_SECOND:
        return "the year 10,000 or later"
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def is_endless(seconds: int) -> bool:
    """Return whether a time is too far in the future to be ever reached."""
    return seconds > _LAST_SECOND


def until(seconds: int, now: float) -> Sentence:
    """Return ` until 2026-12-01 10:00:00 UTC`, with a remark if that has passed."""
    if is_endless(seconds):
        return (Phrase(" "), strong("without a time limit"))
    passed = " (has passed)" if seconds < now else ""
    return (Phrase(" until "), strong(moment(seconds)), Phrase(passed))


def deadline_note(seconds: int, now: float) -> str:
    """Return the note for the number of a deadline."""
    if is_endless(seconds):
        return "no time limit"
    return moment(seconds) + (", has passed" if seconds < now else "")
