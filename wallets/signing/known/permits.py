"""Permits of tokens: allowances that are given by a signature.

Source: https://eips.ethereum.org/EIPS/eip-2612; DAI's dai.sol for the older form
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wallets.signing.known.layouts import (
    FULL,
    NAME_CHAIN_CONTRACT,
    Layout,
    Reading,
    Summary,
)
from wallets.signing.known.phrases import (
    Sentence,
    address,
    allowance_of,
    deadline_note,
    is_unlimited,
    of_account,
    sentence,
    strong,
    token_name,
    until,
)

_REVOKES = "Revokes the permission of {} to move {} from {}; the revocation can be submitted{}."


def other_owner(owner: str, signer: str) -> tuple[Sentence, ...]:
    """Return the warning about data that names another account than the signing one."""
    if owner == signer:
        return ()
    text = "The data concerns the account {}, not the account that signs."
    return (sentence(text, address(owner)),)


def _describe_permit(reading: Reading) -> Summary | None:
    message, token = reading.message, reading.contract
    spender, amount = address(message["spender"]), message["value"]
    owner = of_account(message["owner"], reading.signer)
    deadline = until(message["deadline"], reading.now)
    if amount == 0:
        name = token_name(token, reading.tokens)
        main = sentence(_REVOKES, spender, name, owner, deadline)
    else:
        text = (
            "Lets {} move {} from {} to anyone, until you revoke it; "
            "the permit can be submitted{}."
        )
        allowed = allowance_of(amount, token, reading.tokens)
        main = sentence(text, spender, allowed, owner, deadline)
    return Summary(
        main,
        warnings=other_owner(message["owner"], reading.signer),
        notes={
            **({"value": "unlimited"} if is_unlimited(amount) else {}),
            "deadline": deadline_note(message["deadline"], reading.now),
        },
    )


def _describe_dai(reading: Reading) -> Summary | None:
    message, token = reading.message, reading.contract
    spender, name = address(message["spender"]), token_name(token, reading.tokens)
    holder = of_account(message["holder"], reading.signer)
    expiry = message["expiry"]
    deadline = until(expiry, reading.now)
    note = deadline_note(expiry, reading.now)
    if expiry == 0:
        deadline, note = (strong(" at any time"),), "no time limit"
    if message["allowed"]:
        text = (
            "Lets {} move an {} amount of {} from {} to anyone, until you revoke it; "
            "the permit can be submitted{}."
        )
        main = sentence(text, spender, strong("unlimited"), name, holder, deadline)
    else:
        main = sentence(_REVOKES, spender, name, holder, deadline)
    return Summary(
        main,
        warnings=other_owner(message["holder"], reading.signer),
        notes={
            "allowed": "unlimited" if message["allowed"] else "nothing",
            "expiry": note,
        },
    )


def the_contract(_: Mapping[str, Any], contract: str) -> list[str]:
    """Return the domain's contract, which is the token."""
    return [contract]


PERMITS = (
    Layout(
        title="Token permit (ERC-2612)",
        encoded="Permit(address owner,address spender,uint256 value,uint256 nonce,"
        "uint256 deadline)",
        domains=(FULL, NAME_CHAIN_CONTRACT),
        describe=_describe_permit,
        tokens_of=the_contract,
    ),
    Layout(
        title="Token permit (DAI)",
        encoded="Permit(address holder,address spender,uint256 nonce,uint256 expiry,"
        "bool allowed)",
        describe=_describe_dai,
        tokens_of=the_contract,
    ),
)
