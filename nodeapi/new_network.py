"""Adding a network: its genesis, block 0 and upstreams, for the command and the admin."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import orjson
from django.core.exceptions import ValidationError

from evm.chain_config import ChainConfig, InvalidChainConfig
from evm.genesis import GenesisError
from evm.headers import Header
from networks.masking import mask_url
from networks.models import Network
from networks.services import check_agreement, check_upstream_urls, configure_network
from networks.validators import validate_headers, validate_upstream_url
from nodeapi.chain.database import importer_connection
from nodeapi.chain.genesis import verified_genesis
from nodeapi.chain.networks import network_of_chain, network_to_import
from nodeapi.forks.check import InvalidForkConfig, check_forks
from nodeapi.upstreams.chain import WrongChain, fork_config, require_chain
from nodeapi.upstreams.client import UpstreamClient
from nodeapi.upstreams.errors import UpstreamError, UpstreamUnavailable


class NotAdded(Exception):
    """Raised when a network can't be added. The message contains no secret."""


class SameChain(NotAdded):
    """Raised when another network has the same chain id and genesis."""


class NoAnswer(NotAdded):
    """Raised when an upstream does not answer."""


@dataclass(frozen=True, slots=True)
class Addition:
    """A network to add.

    genesis: geth's genesis.json with the alloc. genesis_hash: the expected hash of block
    0, b"" if any is right. urls, headers: of the upstreams, which are asked for their
    chain if `asks_upstreams`. may_repeat: whether another network may have the same chain
    id and genesis.
    """

    slug: str
    name: str
    genesis: Mapping[str, Any]
    genesis_hash: bytes = b""
    urls: Sequence[str] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    agree: int = 1
    host_names: Sequence[str] = ()
    asks_upstreams: bool = True
    may_repeat: bool = False


@dataclass(frozen=True, slots=True)
class Added:
    """A network that was added.

    warnings: sentences about forks that are not supported, and about upstreams with
    other forks.
    """

    network: Network
    block_0: Header
    warnings: list[str]


def parse_genesis(text: bytes | str) -> dict[str, Any]:
    """Parse a genesis.json. Raises: ValueError."""
    # The EVM has raised Python's recursion limit so far that `json` could crash on lists
    # in lists; orjson refuses those, but rounds total difficulties.
    orjson.loads(text)
    genesis = json.loads(text)
    if not isinstance(genesis, dict):
        raise ValueError("a genesis.json must be a JSON object")
    return genesis


def add(addition: Addition) -> Added:
    """Add a network with block 0 and upstreams, after checks of the upstreams' chain.

    Raises: NotAdded; SameChain, NoAnswer; ValidationError for invalid values; psycopg's
        and Django's database errors.
    """
    check_values(addition)
    genesis = dict(addition.genesis)
    try:
        config = ChainConfig.from_genesis(genesis)
        block_0 = verified_genesis(genesis, config)[0].block.header
    except (InvalidChainConfig, GenesisError) as error:
        raise NotAdded(str(error)) from error
    _require_hash(addition, block_0)
    _require_single(addition, config.chain_id, block_0)
    warnings = list(map(str, config.unknown_forks))
    if addition.asks_upstreams:
        warnings += asyncio.run(_check_upstreams(addition, config, block_0))
    with (
        importer_connection() as connection,
        network_to_import(
            connection, addition.slug, name=addition.name, genesis=genesis
        ) as network_id,
    ):
        network = configure_network(
            network=Network.objects.get(pk=network_id),
            host_names=addition.host_names,
            upstream_urls=addition.urls,
            upstream_headers=addition.headers,
            agree=addition.agree,
        )
    return Added(network, block_0, warnings)


def check_values(addition: Addition) -> None:
    """Validate everything but the genesis, before block 0 is computed, which takes time.

    Raises: ValidationError.
    """
    if Network.objects.filter(slug=addition.slug).exists():
        raise ValidationError(
            f"The slug {addition.slug} is in use. Choose another one."
        )
    network = Network(slug=addition.slug, name=addition.name, agree=addition.agree)
    network.clean_fields(exclude=["chain_id", "genesis", "genesis_hash"])
    network.clean()
    for url in addition.urls:
        validate_upstream_url(url)
    check_upstream_urls(addition.urls)
    check_agreement(addition.agree, len(addition.urls))
    validate_headers(addition.headers)


def _require_hash(addition: Addition, block_0: Header) -> None:
    """Raise NotAdded if block 0 is not the expected one."""
    expected = addition.genesis_hash
    if expected and block_0.hash != expected:
        raise NotAdded(
            f"block 0 of the genesis has the hash 0x{block_0.hash.hex()}, but block 0 of "
            f"the network has the hash 0x{expected.hex()}"
        )


def _require_single(addition: Addition, chain_id: int, block_0: Header) -> None:
    """Raise SameChain if there is a network of this chain that may not be repeated."""
    same = network_of_chain(chain_id, block_0.hash)
    if same is not None and not addition.may_repeat:
        raise SameChain(f"the network {same.slug} has the same chain id and genesis")


async def _check_upstreams(
    addition: Addition, config: ChainConfig, block_0: Header
) -> list[str]:
    """Check every upstream's chain. Return the differences of their fork schedules.

    Raises: NotAdded with the masked URL, for the first upstream that serves another chain
        or does not answer.
    """
    warnings = []
    for url in addition.urls:
        shown = mask_url(url)
        async with UpstreamClient(url, addition.headers) as client:
            try:
                await require_chain(client, config.chain_id, block_0.hash)
            except WrongChain as error:
                raise NotAdded(f"{shown} {error}") from None
            except UpstreamUnavailable as error:
                raise NoAnswer(f"{shown} does not respond: {error}") from None
            except UpstreamError as error:
                raise NotAdded(f"{shown} returned an error: {error}") from None
            with suppress(UpstreamUnavailable, UpstreamError, InvalidForkConfig):
                answer = await fork_config(client)
                found = check_forks(answer, config, block_0.timestamp)
                warnings += [f"{shown}: {text}" for text in found.differences]
    return warnings
