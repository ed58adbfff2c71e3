"""`import_chain`: import blocks from files into a network, verifying each."""

from __future__ import annotations

import sys
import time
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
from nodeapi.chain.importers import (
    BULK_BATCH_BLOCKS,
    FileImporter,
    spare_garbage_collector,
)
from nodeapi.chain.networks import (
    NetworkMismatch,
    SameChain,
    network_to_import,
    stored_config,
)
from nodeapi.chain.sources import BlockFile, with_next
from nodeapi.management.genesis_file import read_genesis

_BAR_WIDTH = 24
_SECONDS_PER_FRAME = 0.1
_SECONDS_PER_LINE = 5.0


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
        started = Network.objects.filter(slug=options["network"])
        if (files or forkchoice) and started.exclude(checkpoint_number=None):
            raise CommandError(
                f"{options['network']} has started at a checkpoint: only its follower, "
                "which fetches unknown values of the state, imports blocks"
            )
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
                importer = FileImporter(
                    connection,
                    network_id,
                    stored_config(network_id),
                    batch_blocks=max(options["batch"], 1),
                    writer=writer,
                    pipeline=reader,
                    record_limit_bytes=settings.NODEAPI_RECORD_LIMIT_BYTES,
                )
                with closing(importer):
                    spare_garbage_collector()
                    if forkchoice is not None:
                        importer.adopt(forkchoice)
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
        importer: FileImporter,
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


class Progress:
    """Shows the share of bytes read, blocks/s, Mgas/s and the remaining time."""

    def __init__(self, stream: TextIO, total_bytes: int) -> None:
        self._stream = stream
        self._total = max(total_bytes, 1)
        self._is_terminal = stream.isatty()
        self._interval = _SECONDS_PER_FRAME if self._is_terminal else _SECONDS_PER_LINE
        self._started = self._shown = time.monotonic()
        self.blocks = 0
        self.known_blocks = 0
        """Number of blocks that were imported before. The importing command counts
        them."""
        self._gas = 0

    def add(self, number: int, gas_used: int, position: int) -> None:
        """Count a block, and update the display at regular intervals.

        position: bytes read so far, of the total.
        """
        self.blocks += 1
        self._gas += gas_used
        now = time.monotonic()
        if now - self._shown >= self._interval:
            self._shown = now
            self._show(self._line(number, position, now))

    def finish(self, number: int) -> None:
        """Show the final totals."""
        elapsed = max(time.monotonic() - self._started, 1e-9)
        known = (
            f", {self.known_blocks} were already stored" if self.known_blocks else ""
        )
        line = (
            f"imported {self.blocks} blocks in {elapsed:.1f} s "
            f"({self._rates(elapsed)}){known}; the head is {number}"
        )
        self._show(line + "\n" if self._is_terminal else line)

    def _line(self, number: int, position: int, now: float) -> str:
        elapsed = max(now - self._started, 1e-9)
        share = min(position / self._total, 1.0)
        left = elapsed / share - elapsed if share else 0.0
        text = f"{share:4.0%} block {number} {self._rates(elapsed)} {_clock(left)} left"
        if not self._is_terminal:
            return text
        filled = round(share * _BAR_WIDTH)
        return f"[{'#' * filled}{'.' * (_BAR_WIDTH - filled)}] {text}"

    def _rates(self, elapsed: float) -> str:
        return f"{self.blocks / elapsed:.1f} blocks/s {self._gas / elapsed / 1e6:.2f} Mgas/s"

    def _show(self, line: str) -> None:
        # \r and "erase to the end of the line": the bar is drawn over itself.
        text = f"\r\x1b[K{line}" if self._is_terminal else f"{line}\n"
        self._stream.write(text)
        self._stream.flush()


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
