"""Transfers of tokens that are authorized by a signature.

Source: https://eips.ethereum.org/EIPS/eip-3009
"""

from __future__ import annotations

from wallets.signing.known.layouts import Layout, Reading, Summary
from wallets.signing.known.permits import other_owner, the_contract
from wallets.signing.known.phrases import (
    Phrase,
    Sentence,
    address,
    amount_of,
    deadline_note,
    is_endless,
    moment,
    of_account,
    sentence,
    strong,
    token_name,
    until,
)

_TRANSFER = (
    "(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,"
    "bytes32 nonce)"
)


def _describe_transfer(reading: Reading) -> Summary | None:
    text = "Lets {} send {} from {} to {}, once,{}{}."
    return _described(reading, text, strong("anyone who has the signature"))


def _describe_receive(reading: Reading) -> Summary | None:
    text = "Lets {} take {} from {} for {}, once,{}{}."
    return _described(reading, text, address(reading.message["to"]))


def _described(reading: Reading, text: str, who: Phrase) -> Summary:
    message = reading.message
    start, end = message["validAfter"], message["validBefore"]
    main = sentence(
        text,
        who,
        amount_of(message["value"], reading.contract, reading.tokens),
        of_account(message["from"], reading.signer),
        address(message["to"]),
        _since(start, reading.now),
        until(end, reading.now),
    )
    notes = {"validBefore": deadline_note(end, reading.now)}
    if start:
        notes["validAfter"] = moment(start) if not is_endless(start) else "never"
    return Summary(
        main, warnings=other_owner(message["from"], reading.signer), notes=notes
    )


def _since(start: int, now: float) -> Sentence:
    """Return the time at which the authorization begins, () if it has begun."""
    if start < now:
        return ()
    return sentence(" not before {} and", strong(moment(start)))


def _describe_cancel(reading: Reading) -> Summary | None:
    message = reading.message
    main = sentence(
        "Cancels an earlier authorization to move {} from {}: the one with the nonce {}.",
        token_name(reading.contract, reading.tokens),
        of_account(message["authorizer"], reading.signer),
        strong("0x" + message["nonce"].hex()),
    )
    return Summary(main, warnings=other_owner(message["authorizer"], reading.signer))


AUTHORIZATIONS = (
    Layout(
        title="Token transfer (EIP-3009)",
        encoded="TransferWithAuthorization" + _TRANSFER,
        describe=_describe_transfer,
        tokens_of=the_contract,
    ),
    Layout(
        title="Token payment (EIP-3009)",
        encoded="ReceiveWithAuthorization" + _TRANSFER,
        describe=_describe_receive,
        tokens_of=the_contract,
    ),
    Layout(
        title="Cancelled token transfer (EIP-3009)",
        encoded="CancelAuthorization(address authorizer,bytes32 nonce)",
        describe=_describe_cancel,
        tokens_of=the_contract,
    ),
)
