"""Permits of Permit2, a contract that moves tokens for others on all chains.

Source: https://docs.uniswap.org/contracts/permit2/overview; Permit2's
    AllowanceTransfer.sol, SignatureTransfer.sol and PermitHash.sol
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from wallets.signing.known.layouts import (
    NAME_CHAIN_CONTRACT,
    Layout,
    Reading,
    Summary,
)
from wallets.signing.known.phrases import (
    Sentence,
    Tokens,
    address,
    allowance_of,
    deadline_note,
    is_unlimited,
    sentence,
    strong,
    token_name,
    until,
)

PERMIT2 = "0x000000000022d473030f116ddee9f6b43ac78ba3"
"""Address on every chain, because it was deployed with CREATE2."""

_DETAILS = "PermitDetails(address token,uint160 amount,uint48 expiration,uint48 nonce)"
_PERMISSIONS = "TokenPermissions(address token,uint256 amount)"
_VALUES = ({"name": "Permit2", "verifyingContract": PERMIT2},)


def _allowed(details: Mapping[str, Any], reading: Reading) -> Sentence:
    """Return the phrases for the allowance of one entry of a permit, and its expiry."""
    token, amount, end = (details[key] for key in ("token", "amount", "expiration"))
    if amount == 0:
        return sentence("no more of {}", token_name(token, reading.tokens))
    allowed = allowance_of(amount, token, reading.tokens, bits=160)
    if end == 0:  # it expires with the block that includes it
        end_text: Sentence = (strong(" in the block that includes it"),)
    else:
        end_text = until(end, reading.now)
    return (*allowed, *end_text)


def _notes(path: str, details: Mapping[str, Any], now: float) -> dict[str, str]:
    notes = {}
    if is_unlimited(details["amount"], 160):
        notes[f"{path}/amount"] = "unlimited"
    end = details["expiration"]
    notes[f"{path}/expiration"] = (
        "the block that includes it" if end == 0 else deadline_note(end, now)
    )
    return notes


def _describe_single(reading: Reading) -> Summary | None:
    message = reading.message
    details = message["details"]
    if details is None:
        return None
    main = sentence(
        "Lets {} move {} from this account to anyone; the permit can be submitted{}.",
        address(message["spender"]),
        _allowed(details, reading),
        until(message["sigDeadline"], reading.now),
    )
    notes = _notes("details", details, reading.now)
    notes["sigDeadline"] = deadline_note(message["sigDeadline"], reading.now)
    return Summary(main, notes=notes)


def _describe_batch(reading: Reading) -> Summary | None:
    message = reading.message
    batch = message["details"]
    if not batch or None in batch:
        return None
    main = sentence(
        "Lets {} move tokens of {} from this account to anyone; "
        "the permit can be submitted{}.",
        address(message["spender"]),
        strong(_kinds(batch)),
        until(message["sigDeadline"], reading.now),
    )
    notes = {"sigDeadline": deadline_note(message["sigDeadline"], reading.now)}
    for number, details in enumerate(batch):
        notes |= _notes(f"details/{number}", details, reading.now)
    items = tuple(sentence("{}", _allowed(one, reading)) for one in batch)
    return Summary(main, items, notes=notes)


def _describe_transfer(reading: Reading) -> Summary | None:
    message = reading.message
    permitted = message["permitted"]
    if permitted is None:
        return None
    main = sentence(
        "Lets {} move {} from this account to anyone, once,{}.",
        address(message["spender"]),
        _taken(permitted, reading.tokens),
        until(message["deadline"], reading.now),
    )
    return Summary(main, notes=_transfer_notes(reading, {"permitted": permitted}))


def _describe_batch_transfer(reading: Reading) -> Summary | None:
    message = reading.message
    batch = message["permitted"]
    if not batch or None in batch:
        return None
    main = sentence(
        "Lets {} move tokens of {} from this account to anyone, once,{}.",
        address(message["spender"]),
        strong(_kinds(batch)),
        until(message["deadline"], reading.now),
    )
    paths = {f"permitted/{number}": one for number, one in enumerate(batch)}
    items = tuple(sentence("{}", _taken(one, reading.tokens)) for one in batch)
    return Summary(main, items, notes=_transfer_notes(reading, paths))


def _taken(permitted: Mapping[str, Any], tokens: Tokens) -> Sentence:
    return allowance_of(permitted["amount"], permitted["token"], tokens)


def _transfer_notes(
    reading: Reading, permitted: Mapping[str, Mapping[str, Any]]
) -> dict[str, str]:
    """Return the notes of a transfer. permitted: amounts by their paths."""
    notes = {"deadline": deadline_note(reading.message["deadline"], reading.now)}
    for path, one in permitted.items():
        if is_unlimited(one["amount"]):
            notes[f"{path}/amount"] = "unlimited"
    return notes


def _kinds(batch: list[Mapping[str, Any]]) -> str:
    count = len({one["token"] for one in batch})
    return f"{count} contract{'s' if count > 1 else ''}"


def _tokens(member: str) -> Any:
    """Return the function that names the tokens of a permit. member: with the amounts."""

    def tokens_of(message: Mapping[str, Any], _: str) -> Iterable[str]:
        found = message[member]
        entries = found if isinstance(found, list) else [found]
        return [one["token"] for one in entries if one is not None]

    return tokens_of


def _layout(title: str, encoded: str, describe: Any, member: str) -> Layout:
    return Layout(
        title=title,
        encoded=encoded,
        describe=describe,
        tokens_of=_tokens(member),
        domains=(NAME_CHAIN_CONTRACT,),
        values=_VALUES,
    )


PERMIT2_PERMITS = (
    _layout(
        "Token permit (Permit2)",
        "PermitSingle(PermitDetails details,address spender,uint256 sigDeadline)"
        + _DETAILS,
        _describe_single,
        "details",
    ),
    _layout(
        "Permit for several tokens (Permit2)",
        "PermitBatch(PermitDetails[] details,address spender,uint256 sigDeadline)"
        + _DETAILS,
        _describe_batch,
        "details",
    ),
    _layout(
        "Token transfer (Permit2)",
        "PermitTransferFrom(TokenPermissions permitted,address spender,uint256 nonce,"
        "uint256 deadline)" + _PERMISSIONS,
        _describe_transfer,
        "permitted",
    ),
    _layout(
        "Transfer of several tokens (Permit2)",
        "PermitBatchTransferFrom(TokenPermissions[] permitted,address spender,"
        "uint256 nonce,uint256 deadline)" + _PERMISSIONS,
        _describe_batch_transfer,
        "permitted",
    ),
)
