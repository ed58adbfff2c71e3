"""Our importer as a racer: decoding, verification, execution, and every row written.

    python -m bench.import_ours FOLDER BATCH

BATCH: blocks a commit; what a lap imports is committed before its clock stops.
The database is the one of VAR_DIR, whose services must run; the chain becomes a network
named as its folder.
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
from nodeapi.chain.database import import_lock, importer_connection, questions
from nodeapi.chain.importer import Importer, spare_garbage_collector
from nodeapi.chain.networks import open_network, stored_config
from nodeapi.chain.sources import with_next
from nodeapi.tracers.record import RECORD_LIMIT_BYTES


def main(folder: Path, batch_blocks: int, *, watches: bool = True) -> None:
    """Race on the chain in a folder; watches: record what transactions do."""
    chain = in_folder(folder)
    with (
        importer_connection() as connection,
        importer_connection() as writer,
        questions() as asking,
        chain.blocks() as raw_blocks,
    ):
        network_id = open_network(connection, folder.name, genesis=chain.genesis())
        with import_lock(connection, network_id):
            importer = Importer(
                connection,
                network_id,
                stored_config(network_id),
                batch_blocks=batch_blocks,
                writer=writer,
                questions=asking,
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
