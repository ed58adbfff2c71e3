"""`manage.py add_network`: a new network that follows upstreams."""

from __future__ import annotations

import asyncio
from argparse import ArgumentParser
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.db import Error as DjangoDatabaseError

from evm.chain_config import ChainConfig, InvalidChainConfig
from evm.genesis import GenesisError
from evm.headers import Header
from evm.public import PUBLIC_NETWORKS, PublicNetwork
from networks.management.arguments import read_headers
from networks.masking import mask_url
from networks.models import Network
from networks.services import check_agreement, check_upstream_urls, configure_network
from networks.validators import validate_headers, validate_upstream_url
from nodeapi.chain.database import importer_connection
from nodeapi.chain.genesis import verified_genesis
from nodeapi.chain.networks import network_to_import
from nodeapi.fork_check import InvalidForkConfig, check_forks
from nodeapi.management.genesis_file import read_genesis
from nodeapi.upstream_chain import WrongChain, fork_config, require_chain
from nodeapi.upstreams.client import UpstreamClient
from nodeapi.upstreams.errors import UpstreamError, UpstreamUnavailable


class Command(BaseCommand):
    help = (
        "Add a network with its genesis and its upstreams. `follow` imports the blocks."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "slug", help="part of the URLs: lower-case letters, digits and -"
        )
        source = parser.add_mutually_exclusive_group(required=True)
        source.add_argument(
            "--genesis", type=Path, metavar="FILE", help="geth's genesis.json"
        )
        source.add_argument(
            "--public", choices=PUBLIC_NETWORKS, help="a built-in genesis"
        )
        parser.add_argument(
            "--upstream",
            action="append",
            default=[],
            metavar="URL",
            help="URL of a node of the chain (http, https, ws, wss); can be given several times",
        )
        parser.add_argument(
            "--header",
            action="append",
            default=[],
            metavar="'NAME: VALUE'",
            help="an HTTP header of every request to these upstreams",
        )
        parser.add_argument(
            "--agree",
            type=int,
            default=1,
            metavar="K",
            help="the number of upstreams that have to agree on the head (default: 1)",
        )
        parser.add_argument("--name", help="name shown on pages")
        parser.add_argument(
            "--host",
            action="append",
            metavar="NAME",
            help="a host name of the network; can be given several times",
        )
        parser.add_argument(
            "--no-check",
            action="store_true",
            help="do not ask the upstreams which chain they serve",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        slug, urls = options["slug"], options["upstream"]
        headers = read_headers(options["header"])
        if Network.objects.filter(slug=slug).exists():
            raise CommandError(
                f"the slug {slug!r} is in use: configure_network changes it"
            )
        try:
            _check_arguments(slug, urls, headers, options["agree"])
            public = PUBLIC_NETWORKS.get(options["public"] or "")
            genesis = public.genesis() if public else read_genesis(options["genesis"])
            config = ChainConfig.from_genesis(genesis)
            first = _block_0(genesis, config, public)
            if not options["no_check"]:
                self._warn(asyncio.run(_check_upstreams(urls, headers, config, first)))
            with (
                importer_connection() as connection,
                network_to_import(
                    connection,
                    slug,
                    name=options["name"] or (public.title if public else slug),
                    genesis=genesis,
                ) as network_id,
            ):
                configure_network(
                    network=Network.objects.get(pk=network_id),
                    host_names=options["host"],
                    upstream_urls=urls,
                    upstream_headers=headers,
                    agree=options["agree"],
                )
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from error
        except (InvalidChainConfig, GenesisError) as error:
            raise CommandError(str(error)) from error
        except (psycopg.Error, DjangoDatabaseError) as error:
            reason = (str(error) or type(error).__name__).splitlines()[0]
            raise CommandError(f"the database failed: {reason}") from error
        self._warn(map(str, config.unknown_forks))
        self.stdout.write(
            self.style.SUCCESS(
                f"{slug}: added, chain id {config.chain_id}, block 0 "
                f"0x{first.hash.hex()}, upstreams: {len(urls)}"
            )
        )

    def _warn(self, warnings: Iterable[str]) -> None:
        for warning in warnings:
            self.stderr.write(self.style.WARNING(warning))


def _check_arguments(
    slug: str, urls: Sequence[str], headers: Mapping[str, str], agree: int
) -> None:
    """Validate arguments before block 0 is computed, which takes time.

    Raises: ValidationError.
    """
    network = Network(slug=slug, name=slug, agree=agree)
    network.clean_fields(exclude=["chain_id", "genesis", "genesis_hash"])
    network.clean()
    for url in urls:
        validate_upstream_url(url)
    check_upstream_urls(urls)
    check_agreement(agree, len(urls))
    validate_headers(headers)


def _block_0(
    genesis: Mapping[str, Any], config: ChainConfig, public: PublicNetwork | None
) -> Header:
    """Return the header of block 0.

    Raises: CommandError if its hash is not that of the public network's block 0.
    """
    verified, _ = verified_genesis(genesis, config)
    header = verified.block.header
    if public is not None and header.hash != public.genesis_hash:
        raise CommandError(
            f"block 0 of the built-in genesis is 0x{header.hash.hex()}, that of "
            f"{public.name} is 0x{public.genesis_hash.hex()}"
        )
    return header


async def _check_upstreams(
    urls: Sequence[str], headers: Mapping[str, str], config: ChainConfig, first: Header
) -> list[str]:
    """Check every upstream's chain. Return the differences of their fork schedules.

    Raises: CommandError, with the masked URL, for the first upstream that serves another
        chain or does not answer.
    """
    warnings = []
    for url in urls:
        shown = mask_url(url)
        async with UpstreamClient(url, headers) as client:
            try:
                await require_chain(client, config.chain_id, first.hash)
            except WrongChain as error:
                raise CommandError(f"{shown} {error}") from None
            except UpstreamUnavailable as error:
                raise CommandError(
                    f"{shown} does not answer: {error}; --no-check skips this"
                ) from None
            except UpstreamError as error:
                raise CommandError(f"{shown} answers an error: {error}") from None
            with suppress(UpstreamUnavailable, UpstreamError, InvalidForkConfig):
                answer = await fork_config(client)
                found = check_forks(answer, config, first.timestamp)
                warnings += [f"{shown}: {text}" for text in found.differences]
    return warnings
