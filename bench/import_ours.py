"""Our importer as a racer (`bench.racers`), including all writes to PostgreSQL.

    python -m bench.import_ours FOLDER [--batch BLOCKS] [--without records|lists|logs] [--proofs]

BLOCKS: number of blocks in one commit, by default as in `import_chain`. The measured time
of a lap includes its commits. `--without` leaves out the trace records, the access lists
or the log index,
`--proofs` keeps the trie nodes of all blocks.
The database is that of VAR_DIR, whose services must run. The new network has the name of
the folder.
"""

# ruff: noqa: E402 (Django and hash backends must be set up before what uses them)

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import islice
from pathlib import Path
from unittest.mock import patch

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from bench.racers import serve
from bench.token_chain import in_folder
from evm.tracers.record import RECORD_LIMIT_BYTES
from networks.models import Network
from networks.services import configure_network, finish_preparing
from nodeapi.chain import writer
from nodeapi.chain.database import import_lock, importer_connection, pipeline
from nodeapi.chain.importers import (
    BULK_BATCH_BLOCKS,
    FileImporter,
    spare_garbage_collector,
)
from nodeapi.chain.networks import open_network, stored_config
from nodeapi.chain.rows import Rows
from nodeapi.chain.sources import with_next
from nodeapi.chain.verification import verify_block


def main() -> None:
    """Import the chain of a folder as the command line describes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--batch", type=int, default=BULK_BATCH_BLOCKS)
    parser.add_argument("--without", choices=["records", "lists", "logs"])
    parser.add_argument("--proofs", action="store_true")
    options = parser.parse_args()
    folder: Path = options.folder
    chain = in_folder(folder)
    with (
        importer_connection() as connection,
        importer_connection() as second,
        pipeline() as reader,
        chain.blocks() as raw_blocks,
        _left_out(options.without),
    ):
        network_id = open_network(connection, folder.name, genesis=chain.genesis())
        finish_preparing(network_id)  # servers answer requests from the first block on
        if options.proofs:
            network = Network.objects.get(pk=network_id)
            configure_network(network=network, keep_proofs="all")
        with import_lock(connection, network_id):
            importer = FileImporter(
                connection,
                network_id,
                stored_config(network_id),
                batch_blocks=options.batch,
                writer=second,
                pipeline=reader,
                record_limit_bytes=None
                if options.without == "records"
                else RECORD_LIMIT_BYTES,
            )
            spare_garbage_collector()

            def prepare(count: int) -> Callable[[], None]:
                blocks = list(islice(raw_blocks, count))
                assert len(blocks) == count

                def work() -> None:
                    for raw, following in with_next(blocks):
                        importer.add(raw, following)
                    importer.commit()

                return work

            serve(prepare)


def _left_out(part: str | None) -> AbstractContextManager[object]:
    """Leave out a part of the import in a `with` block."""
    if part == "logs":
        return patch.object(Rows, "insert_logs")
    if part == "lists":
        verify = partial(verify_block, lists_accesses=False)
        return patch.object(writer, "verify_block", verify)
    return nullcontext()


if __name__ == "__main__":
    main()
