"""Adding a network: its genesis, block 0 and upstreams, for the command and the admin."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from networks.masking import mask_url
from networks.models import Network
from networks.services import check_agreement, check_upstream_urls, configure_network
from networks.validators import validate_headers, validate_upstream_url
from nodeapi.chain.database import importer_connection
from nodeapi.chain.networks import network_to_import
from nodeapi.upstreams.client import UpstreamClient
from nodeapi.upstreams.errors import UpstreamError, UpstreamUnavailable


class NotAdded(ValueError):
    """Raised when a network can't be added. The message contains no secret."""


@dataclass(frozen=True, slots=True)
class Addition:
    """A network to add.

    genesis: geth's genesis.json with the alloc. genesis_hash: the expected hash of block
    0, b"" if any is right. urls, headers: of the upstreams.
    """

    slug: str
    name: str
    genesis: Mapping[str, Any]
    urls: Sequence[str] = ()
    headers: Mapping[str, str] | None = None
    genesis_hash: bytes = b""
    may_repeat: bool = False
    """Whether another network may have the same chain id and genesis."""


def parse_genesis(text: bytes) -> dict[str, Any]:
    """Parse a genesis.json. Raises: NotAdded."""
    try:
        # `json` could crash on lists in lists, because the EVM has raised Python's
        # recursion limit. orjson refuses those, but rounds total difficulties.
        orjson.loads(text)
        genesis = json.loads(text)
    except ValueError as error:
        raise NotAdded(f"The file is not JSON: {error}") from error
    if not isinstance(genesis, dict):
        raise NotAdded("A genesis.json is a JSON object.")
    return genesis


def add(addition: Addition) -> Network:
    """Add a network with block 0 and upstreams, after checks of the upstreams' chain.

    Raises: NotAdded; ValidationError for invalid values.
    """
    from evm.chain_config import ChainConfig, InvalidChainConfig  # loads the EVM
    from evm.genesis import GenesisError
    from nodeapi.chain.genesis import verified_genesis

    headers = addition.headers or {}
    network = Network(slug=addition.slug, name=addition.name)
    network.clean_fields(exclude=["chain_id", "genesis", "genesis_hash"])
    network.clean()
    for url in addition.urls:
        validate_upstream_url(url)
    check_upstream_urls(addition.urls)
    check_agreement(1, len(addition.urls))
    validate_headers(headers)
    genesis = dict(addition.genesis)
    try:
        config = ChainConfig.from_genesis(genesis)
        verified, _ = verified_genesis(genesis, config)
    except (InvalidChainConfig, GenesisError) as error:
        raise NotAdded(str(error)) from error
    first = verified.block.header.hash
    if addition.genesis_hash and first != addition.genesis_hash:
        raise NotAdded(f"Block 0 is 0x{first.hex()}, which is not that of the network.")
    existing = network_of_chain(config.chain_id, first)
    if existing is not None and not addition.may_repeat:
        raise NotAdded(
            f"The network {existing.slug} has the same chain id and genesis. "
            "Confirm that you want a second one."
        )
    asyncio.run(_check_upstreams(addition.urls, headers, config.chain_id, first))
    with (
        importer_connection() as connection,
        network_to_import(
            connection, addition.slug, name=addition.name, genesis=genesis
        ) as network_id,
    ):
        return configure_network(
            network=Network.objects.get(pk=network_id),
            upstream_urls=addition.urls,
            upstream_headers=headers,
        )


def network_of_chain(chain_id: int, genesis_hash: bytes) -> Network | None:
    """Return the oldest network with a chain id and genesis, None if there is none."""
    found = Network.objects.filter(chain_id=chain_id, genesis_hash=genesis_hash)
    return found.first()


async def _check_upstreams(
    urls: Sequence[str], headers: Mapping[str, str], chain_id: int, first: bytes
) -> None:
    """Check every upstream's chain. Raises: NotAdded, with the masked URL."""
    from nodeapi.upstream_chain import WrongChain, require_chain

    for url in urls:
        shown = mask_url(url)
        async with UpstreamClient(url, headers) as client:
            try:
                await require_chain(client, chain_id, first)
            except WrongChain as error:
                raise NotAdded(f"{shown} {error}") from None
            except UpstreamUnavailable as error:
                raise NotAdded(f"{shown} does not answer: {error}") from None
            except UpstreamError as error:
                raise NotAdded(f"{shown} answers an error: {error}") from None
