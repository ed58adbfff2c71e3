"""Adding a network: its genesis, block 0 and upstreams, for the command and the admin."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import orjson
from django.core.exceptions import ValidationError

from evm.chain_config import ChainConfig, InvalidChainConfig
from evm.genesis import GenesisError
from evm.headers import Header
from evm.public import PublicNetwork, final_total_difficulty
from networks.masking import mask_url
from networks.models import Network
from networks.services import (
    Checkpoint,
    check_agreement,
    check_upstream_urls,
    configure_network,
)
from networks.validators import validate_headers, validate_upstream_url
from nodeapi.chain.database import importer_connection
from nodeapi.chain.genesis import verified_genesis
from nodeapi.chain.networks import network_of_chain, network_to_import
from nodeapi.checkpoint import Candidate, NoCheckpoint, find_checkpoint
from nodeapi.forks.check import InvalidForkConfig, check_forks
from nodeapi.upstreams.chain import WrongChain, fork_config, require_chain
from nodeapi.upstreams.client import UpstreamClient
from nodeapi.upstreams.errors import UpstreamError, UpstreamUnavailable
from nodeapi.upstreams.source import BlockSource


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
    id and genesis. checkpoint: from `choose_checkpoint`, None to start at block 0.
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
    checkpoint: Checkpoint | None = None


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
    config, block_0 = _checked(addition)
    warnings = list(map(str, config.unknown_forks))
    if addition.asks_upstreams:
        warnings += asyncio.run(_check_upstreams(addition, config, block_0))
    with (
        importer_connection() as connection,
        network_to_import(
            connection,
            addition.slug,
            name=addition.name,
            genesis=dict(addition.genesis),
            checkpoint=addition.checkpoint,
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


def choose_checkpoint(addition: Addition, wanted: bytes | None) -> Candidate:
    """Ask the upstreams for the block at which a network is to start.

    wanted: its hash; None for the newest finalized block on which `addition.agree`
        upstreams agree. Its hash has to be compared with another source.

    Raises: as `add`.
    """
    config, block_0 = _checked(addition)
    if not addition.urls:
        raise NotAdded("a checkpoint needs at least one upstream")

    async def find() -> Candidate:
        if addition.asks_upstreams:
            await _check_upstreams(addition, config, block_0)
        async with AsyncExitStack() as stack:
            sources = [
                BlockSource(
                    await stack.enter_async_context(
                        UpstreamClient(url, addition.headers)
                    )
                )
                for url in addition.urls
            ]
            return await find_checkpoint(sources, wanted, addition.agree, config)

    try:
        return asyncio.run(find())
    except NoCheckpoint as error:
        raise NotAdded(str(error)) from error


def checkpoint_at(
    addition: Addition, header: Header, history_blocks: int
) -> Checkpoint:
    """Return a chosen block as a checkpoint. history_blocks: see `Checkpoint`."""
    return Checkpoint(
        header.number,
        header.hash,
        history_blocks,
        has_total_difficulty=final_total_difficulty(addition.genesis_hash) is not None,
    )


def checkpoint_text(found: Candidate, public: PublicNetwork | None) -> list[str]:
    """Return sentences that name a checkpoint, and where its hash can be compared."""
    header = found.header
    explorer = f" ({public.explorer}/block/{header.number})" if public else ""
    time = datetime.fromtimestamp(header.timestamp, UTC)
    return [
        f"Checkpoint: block {header.number}, 0x{header.hash.hex()}, "
        f"{time:%Y-%m-%d %H:%M:%S} UTC, on the chain of {found.supporters} of "
        f"{found.upstreams} upstreams.",
        "All data of the network is verified with this hash, which nothing else "
        f"verifies. Compare it with another provider, an explorer{explorer} or your own "
        "beacon node (/eth/v2/beacon/blocks/finalized: execution_payload.block_hash).",
    ]


def _checked(addition: Addition) -> tuple[ChainConfig, Header]:
    """Return the fork schedule and the header of block 0, without asking upstreams.

    Raises: as `add`.
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
    return config, block_0


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
