"""Values that contracts report: names and decimals of tokens, hashes of domains.

A contract can have any name. Pages therefore say that a name comes from the contract.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from abi.erc20 import DECIMALS, READ_GAS, SYMBOL, Token, read_token
from wallets.effects.words import WORD
from wallets.signing.known.recognition import Known
from wallets.upstream import ChainNode


@dataclass(frozen=True, slots=True)
class Facts:
    """Values that a known contract and tokens report.

    is_confirmed: whether the contract returns the hash of the domain that is signed.
    tokens: by address.
    """

    is_confirmed: bool
    tokens: Mapping[str, Token]


def read_call(contract: str, data: str) -> dict[str, str]:
    """Return a call object. data: hexadecimal digits without 0x."""
    return {"to": contract, "data": "0x" + data, "gas": hex(READ_GAS)}


def token_calls(token: str) -> list[dict[str, str]]:
    """Return the calls whose results `named_token` reads."""
    return [read_call(token, one.hex()) for one in (SYMBOL, DECIMALS)]


def named_token(symbol: Mapping[str, Any], decimals: Mapping[str, Any]) -> Token:
    """Return a token's symbol and decimals from the results of two calls."""
    return read_token(returned(symbol), returned(decimals))


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
            token: named_token(*results[1 + 2 * place : 3 + 2 * place])
            for place, token in enumerate(tokens)
        },
    )
