"""The tables of errors, generated from their classes, and of why WebSockets are closed."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from http import HTTPStatus
from typing import NamedTuple

import keys.errors  # defines error classes
import keys.limiter.errors  # noqa: F401  # likewise
from jsonrpc.errors import RpcError, error_classes
from nodeapi.errors import (  # noqa: F401  # likewise
    access,
    arguments,
    blocks,
    logs,
    proofs,
    relay,
    sockets,
    traces,
)
from nodeapi.frames import close_codes


class ErrorEntry(NamedTuple):
    """A row of a table of errors."""

    reason: str
    """The value of `data.reason`; empty for errors with geth's messages."""
    code: int
    status: HTTPStatus
    """The HTTP status of a single call; a batch always gets 200."""
    name: str
    message: str
    """The message, with placeholders in angle brackets. Empty if it has a reason."""
    when: str
    """The cause, as a sentence."""
    remedy: str
    """What the caller can do, as sentences."""


class CodedError(NamedTuple):
    """A row of a table of errors that only have a code."""

    code: int
    message: str
    """The message, a description of it, or "" if it varies."""
    when: str
    """The cause, as a sentence."""
    remedy: str
    """What the caller can do, as sentences."""


class Section(NamedTuple):
    """The errors of another package. name: identifier for links."""

    name: str
    title: str
    text: str
    errors: list[CodedError]


ErrorSection = Callable[[], Section]


EXECUTION_ERRORS = [
    CodedError(
        3,
        "execution reverted: <reason>",
        "When a contract reverts a call.",
        "Decode the reason from data with the ABI of the contract.",
    ),
    CodedError(
        -32015,
        "<error of the EVM>",
        "For a call in the result of eth_simulateV1 that fails during its execution.",
        "Correct the call. The other calls of the simulation have their own results.",
    ),
    CodedError(
        -38010,
        "nonce too low",
        "When eth_simulateV1 validates a call whose nonce is already used.",
        "Use the next nonce of the sender, or leave the nonce out.",
    ),
    CodedError(
        -38011,
        "nonce too high",
        "When eth_simulateV1 validates a call whose nonce is not the next one.",
        "Use the next nonce of the sender, or leave the nonce out.",
    ),
    CodedError(
        -38012,
        "max fee per gas less than block base fee",
        "When eth_simulateV1 validates a call that pays less than the base fee.",
        "Raise maxFeePerGas, or override the base fee of the block.",
    ),
    CodedError(
        -38013,
        "intrinsic gas too low",
        "When the gas limit of a simulated call is below its fixed cost.",
        "Raise the gas limit of the call.",
    ),
    CodedError(
        -38014,
        "insufficient funds for gas * price + value",
        "When the sender of a simulated call can't pay for it.",
        "Override the balance of the sender, or set validation to false.",
    ),
    CodedError(
        -38015,
        "block gas limit reached",
        "When the calls of a simulated block need more gas than the block has.",
        "Distribute the calls over several blocks, or override the gas limit.",
    ),
    CodedError(
        -38020,
        "block numbers must be in order",
        "When a simulated block has a number that is not above the one before.",
        "Number the blocks in ascending order, or leave the numbers out.",
    ),
    CodedError(
        -38021,
        "block timestamps must be in order",
        "When a simulated block has a timestamp that is not above the one before.",
        "Use ascending timestamps, or leave them out.",
    ),
    CodedError(
        -38025,
        "max initcode size exceeded",
        "When a simulated call creates a contract with too much code.",
        "Shorten the code, or split the contract.",
    ),
]
"""Codes that no class has, because the execution returns them with their messages."""


def error_entries() -> list[ErrorEntry]:
    """Return an entry for each error class, those with a reason first."""
    entries = [
        ErrorEntry(
            error.reason,
            error.code,
            HTTPStatus(error.http_status),
            error.__name__,
            "" if error.reason else error.form or error.text,
            _sentence(error),
            error.remedy,
        )
        for error in error_classes()
        if not error.__name__.startswith("_")  # base classes
    ]
    return sorted(entries, key=lambda entry: (not entry.reason, entry))


def _sentence(error: type[RpcError]) -> str:
    """Return the first sentence of an error's docstring: `When …`."""
    text = (inspect.getdoc(error) or "").partition("\n\n")[0]
    words = " ".join(text.removeprefix("Raised ").replace("`", "").split())
    return words[:1].upper() + words[1:]


_CLOSES = [
    CodedError(
        close_codes.NOT_TEXT,
        "",
        "When a dapp sends the wallet a binary frame.",
        "Send text frames.",
    ),
    CodedError(
        close_codes.REJECTED,
        "",
        "When a handshake is rejected by a server that can't send an HTTP response to it, "
        "or a client sends a frame to a socket that accepts none.",
        "Check the key and the path. The same request over HTTP returns the reason.",
    ),
    CodedError(
        1009,
        "",
        "When a frame is longer than 1 MiB.",
        "Send long bodies, such as transactions with many blobs, over HTTP.",
    ),
    CodedError(
        close_codes.SUBSCRIPTION_FAILED,
        "",
        "When a subscription can't deliver every event, or pings are not answered.",
        "Connect and subscribe again, and read the missed blocks with calls.",
    ),
    CodedError(
        1012,
        "",
        "When a process of the service restarts.",
        "Connect and subscribe again.",
    ),
    CodedError(
        close_codes.SLOW_READER,
        "",
        "When the client does not read what it has requested.",
        "Read faster, or use fewer subscriptions on a socket.",
    ),
    CodedError(
        close_codes.REVOKED,
        "",
        "When the key, token or log-in of the socket is no longer valid, or no longer "
        "permits what the socket does.",
        "Connect with a valid key. Dapps ask the user for a new session.",
    ),
    CodedError(
        close_codes.TOO_FAST,
        "",
        "When calls continue although they are rejected, or the key has no credits left "
        "for notifications.",
        "Wait until the key has credits again, and send fewer calls at a time.",
    ),
]


def socket_closes() -> Section:
    """Return the close codes of all WebSockets, sorted by code."""
    text = (
        "These are not JSON-RPC errors: the service closes a WebSocket with one of these "
        "codes. Codes below 4000 are those of RFC 6455."
    )
    return Section("closes", "Closed WebSockets", text, sorted(_CLOSES))
