"""Our importer as a racer (`bench.racers`), including all writes to PostgreSQL.

    python -m bench.import_ours FOLDER BATCH

BATCH: number of blocks in one commit. The measured time of a lap includes its commits.
The database is that of VAR_DIR, whose services must run. The new network has the name of
the folder.
"""

# ruff: noqa: E402 (Django and hash backends must be set up before what uses them)

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from bench.racers import serve
from bench.token_chain import in_folder
from evm.tracers.record import RECORD_LIMIT_BYTES
from nodeapi.chain.database import import_lock, importer_connection, pipeline
from nodeapi.chain.importers import FileImporter, spare_garbage_collector
from nodeapi.chain.networks import open_network, stored_config
from nodeapi.chain.sources import with_next


def main(folder: Path, batch_blocks: int, *, watches: bool = True) -> None:
    """Import the chain of a folder. watches: whether to store trace records."""
    chain = in_folder(folder)
    with (
        importer_connection() as connection,
        importer_connection() as writer,
        pipeline() as reader,
        chain.blocks() as raw_blocks,
    ):
        network_id = open_network(connection, folder.name, genesis=chain.genesis())
        with import_lock(connection, network_id):
            importer = FileImporter(
                connection,
                network_id,
                stored_config(network_id),
                batch_blocks=batch_blocks,
                writer=writer,
                pipeline=reader,
                record_limit_bytes=RECORD_LIMIT_BYTES if watches else None,
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


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
