"""Values that contracts report: names and decimals of tokens, hashes of domains.

A contract can have any name. Pages therefore say that a name comes from the contract.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wallets.effects.words import WORD, numbers, selector
from wallets.signing.known.phrases import MAX_DECIMALS, Token
from wallets.signing.known.recognition import Known
from wallets.upstream import ChainNode

READ_GAS = 100_000
"""Gas of a read call. Tokens behind a proxy need about 30 000."""

_SYMBOL = re.compile(r"[A-Za-z0-9][A-Za-z0-9.$_+-]{0,15}")
"""Symbols that are shown. Others could look like another token's, or like text of the
page."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Values that a known contract and tokens report.

    is_confirmed: whether the contract returns the hash of the domain that is signed.
    tokens: by address.
    """

    is_confirmed: bool
    tokens: Mapping[str, Token]


def read_call(contract: str, data: str, sender: str | None = None) -> dict[str, str]:
    """Return a call object. data: hexadecimal digits without 0x."""
    call = {"to": contract, "data": "0x" + data, "gas": hex(READ_GAS)}
    return call if sender is None else {"from": sender, **call}


def token_calls(token: str) -> list[dict[str, str]]:
    """Return the calls whose results `read_token` reads."""
    return [read_call(token, selector(one)) for one in ("symbol()", "decimals()")]


def read_token(symbol: Mapping[str, Any], decimals: Mapping[str, Any]) -> Token:
    """Return a token's symbol and decimals from the results of two calls."""
    return Token(_read_symbol(returned(symbol)), _read_decimals(returned(decimals)))


def returned(result: Mapping[str, Any]) -> bytes:
    """Return the data that a simulated call returned, b"" if it failed."""
    if int(result["status"], 16) != 1:
        return b""
    return bytes.fromhex(result["returnData"][2:])


async def read_facts(node: ChainNode, known: Known) -> Facts:
    """Read the contracts of known typed data after the newest block.

    Raises: UpstreamUnavailable, UpstreamRefused.
    """
    tokens = known.tokens
    calls = [read_call(known.contract, known.separator.selector.hex())]
    for token in tokens:
        calls += token_calls(token)
    payload = {"blockStateCalls": [{"calls": calls}]}
    blocks = await node.call("eth_simulateV1", payload, "latest")
    results: Sequence[Mapping[str, Any]] = blocks[0]["calls"]
    start = WORD * known.separator.word
    return Facts(
        is_confirmed=returned(results[0])[start : start + WORD] == known.domain_hash,
        tokens={
            token: read_token(*results[1 + 2 * place : 3 + 2 * place])
            for place, token in enumerate(tokens)
        },
    )


def _read_symbol(data: bytes) -> str:
    """Return a symbol, a string or 32 bytes as of early tokens; "" if it is unusual."""
    if len(data) >= 3 * WORD:
        length = int.from_bytes(data[WORD : 2 * WORD])
        text = data[2 * WORD : 2 * WORD + length] if length <= WORD else b""
    else:
        text = data.rstrip(b"\0")
    shown = text.decode("ascii", errors="replace")
    return shown if _SYMBOL.fullmatch(shown) else ""


def _read_decimals(data: bytes) -> int | None:
    try:
        (decimals,) = numbers(data)
    except ValueError:
        return None
    return decimals if decimals <= MAX_DECIMALS else None
