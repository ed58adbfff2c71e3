"""`import_chain`: import blocks from files into a network, verifying each."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from contextlib import closing
from pathlib import Path
from typing import Any, TextIO

import psycopg
from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.db import Error as DjangoDatabaseError

from evm.chain_config import InvalidChainConfig, UnsupportedFork
from evm.errors import InvalidBlock
from evm.genesis import GenesisError
from evm.public import PUBLIC_NETWORKS
from evm.rlp import RlpError
from networks.models import Network
from networks.services import finish_preparing
from nodeapi.chain.database import (
    ImportRunning,
    import_lock,
    importer_connection,
    pipeline,
)
from nodeapi.chain.forkchoice import (
    Forkchoice,
    ForkchoiceMismatch,
    parse_forkchoice,
)
from nodeapi.chain.importer import (
    BULK_BATCH_BLOCKS,
    Importer,
    spare_garbage_collector,
)
from nodeapi.chain.networks import (
    NetworkMismatch,
    SameChain,
    network_to_import,
    stored_config,
)
from nodeapi.chain.progress import Progress
from nodeapi.chain.sources import BlockFile, with_next
from nodeapi.management.genesis_file import read_genesis


class Command(BaseCommand):
    help = (
        "Import blocks from files (.rlp, .rlp.gz): each block is executed and verified."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--network",
            required=True,
            metavar="SLUG",
            help="slug of the network, which is created if necessary",
        )
        source = parser.add_mutually_exclusive_group()
        source.add_argument(
            "--genesis",
            type=Path,
            help="geth's genesis.json; required for a new network",
        )
        source.add_argument(
            "--public",
            choices=PUBLIC_NETWORKS,
            help="a built-in genesis, with the forks that this version knows",
        )
        parser.add_argument("--name", help="name of a new network, its slug by default")
        parser.add_argument(
            "--second",
            action="store_true",
            help="create the network although another one has the same chain id and genesis",
        )
        parser.add_argument(
            "--forkchoice",
            type=Path,
            metavar="FILE",
            help="an engine_forkchoiceUpdated request with head, safe and finalized block",
        )
        parser.add_argument(
            "--batch",
            type=int,
            default=BULK_BATCH_BLOCKS,
            metavar="BLOCKS",
            help="blocks per commit, which makes them visible (default: %(default)s)",
        )
        parser.add_argument(
            "chain",
            nargs="*",
            type=Path,
            metavar="FILE",
            help="a file with blocks as RLP, or the same compressed (.rlp.gz)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        files = [_block_file(path) for path in options["chain"]]
        forkchoice = _forkchoice(options["forkchoice"])
        genesis = None
        if options["public"] is not None:
            genesis = PUBLIC_NETWORKS[options["public"]].genesis()
        elif options["genesis"] is not None:
            genesis = read_genesis(options["genesis"])
        try:
            with (
                importer_connection() as connection,
                importer_connection() as writer,
                pipeline() as reader,
                network_to_import(
                    connection,
                    options["network"],
                    name=options["name"],
                    genesis=genesis,
                    may_repeat=options["second"],
                ) as network_id,
                import_lock(connection, network_id),
            ):
                importer = Importer(
                    connection,
                    network_id,
                    stored_config(network_id),
                    forkchoice=forkchoice,
                    batch_blocks=max(options["batch"], 1),
                    writer=writer,
                    pipeline=reader,
                    record_limit_bytes=settings.NODEAPI_RECORD_LIMIT_BYTES,
                )
                with closing(importer):
                    spare_garbage_collector()
                    stream = options.get("stderr") or sys.stderr
                    self._import(importer, files, forkchoice, stream)
                network = Network.objects.get(pk=network_id)
                if not network.upstreams.filter(is_enabled=True).exists():
                    finish_preparing(network_id)  # otherwise the follower decides
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from error
        except SameChain as error:
            raise CommandError(f"{error}; --second creates another one") from error
        except (InvalidChainConfig, GenesisError, NetworkMismatch) as error:
            raise CommandError(str(error)) from error
        except (ImportRunning, ForkchoiceMismatch) as error:
            raise CommandError(str(error)) from error
        except (psycopg.Error, DjangoDatabaseError) as error:
            raise CommandError(
                f"the database failed: {_first_line(error)}; committed blocks are kept, "
                "and the same command continues after them"
            ) from error

    def _import(
        self,
        importer: Importer,
        files: list[BlockFile],
        forkchoice: Forkchoice | None,
        stream: TextIO,
    ) -> None:
        # Not `self.stderr`: that wrapper ends each write with a new line.
        progress = Progress(stream, sum(file.size for file in files))
        done = 0
        number = importer.head.header.number
        try:
            for file in files:
                with file.open() as blocks:
                    for raw, following in with_next(blocks):
                        block = importer.add(raw, following)
                        if block is None:
                            progress.known_blocks += 1
                            continue
                        number = block.header.number
                        progress.add(
                            number, block.header.gas_used, done + file.position
                        )
                done += file.size
            importer.commit()
        except (InvalidBlock, UnsupportedFork, RlpError, EOFError, OSError) as error:
            if not isinstance(error, psycopg.Error):
                importer.commit()
            raise CommandError(_reason(error, number)) from error
        head = importer.head.header
        progress.finish(head.number)
        if forkchoice is not None and head.hash != forkchoice.head:
            message = (
                "the forkchoice was not set, because its head was not imported: the "
                f"head is 0x{head.hash.hex()}"
            )
            self.stderr.write(message)


def _reason(error: Exception, number: int) -> str:
    """Return one line with the block and the error."""
    if isinstance(error, InvalidBlock | UnsupportedFork):
        return str(error)
    return f"after block {number}: {_first_line(error)}"


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]


def _block_file(path: Path) -> BlockFile:
    try:
        return BlockFile(path)
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from error


def _forkchoice(path: Path | None) -> Forkchoice | None:
    if path is None:
        return None
    try:
        return parse_forkchoice(path.read_text())
    except (OSError, ValueError) as error:
        raise CommandError(f"{path}: {_first_line(error)}") from error
