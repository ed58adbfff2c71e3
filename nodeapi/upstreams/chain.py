"""Checks of an upstream's chain id and genesis, and reads of its fork schedule."""

from __future__ import annotations

from typing import Any

from nodeapi.upstreams.client import UpstreamClient
from nodeapi.upstreams.errors import MethodUnavailable, UpstreamUnavailable
from nodeapi.upstreams.quantities import quantity


class WrongChain(Exception):
    """Raised when an upstream serves another chain. The text does not name its URL."""


async def require_chain(
    client: UpstreamClient, chain_id: int, genesis_hash: bytes
) -> None:
    """Check an upstream's chain id and the hash of its block 0.

    Raises: WrongChain; UpstreamUnavailable, also for malformed results; UpstreamError.
    """
    found = _chain_id(await client.call("eth_chainId"))
    if found != chain_id:
        raise WrongChain(
            f"has the chain id {found}, but the genesis has the chain id {chain_id}"
        )
    block = await client.call("eth_getBlockByNumber", "0x0", False)
    if block is None:
        raise WrongChain("has no block 0")
    found_hash = _hash(block)
    if found_hash != genesis_hash:
        raise WrongChain(
            f"has another block 0: its hash is 0x{found_hash.hex()}, but that of the "
            f"genesis is 0x{genesis_hash.hex()}"
        )


async def fork_config(client: UpstreamClient) -> Any:
    """Return an upstream's eth_config (EIP-7910), or None if it lacks the method.

    Raises: UpstreamUnavailable, UpstreamError.
    """
    try:
        return await client.call("eth_config")
    except MethodUnavailable:
        return None


def _chain_id(value: Any) -> int:
    try:
        return quantity(value, 64)
    except ValueError as error:
        raise UpstreamUnavailable(f"eth_chainId returned {error}") from None


def _hash(block: Any) -> bytes:
    try:
        found = bytes.fromhex(block["hash"].removeprefix("0x"))
        if len(found) != 32:
            raise ValueError
    except (AttributeError, KeyError, TypeError, ValueError):
        raise UpstreamUnavailable("block 0 has no hash") from None
    return found
