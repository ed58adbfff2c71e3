"""The parts of the benchmarks, and the process that runs one of them.

    python -m bench.part PART FILE

writes the rows of a part to FILE in the format of `report.write_json`. The process has its
own database.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from bench import report
from bench.rows import machine
from bench.turns import say, set_budget


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the benchmarks.

    function: `module:name` of a function that takes a folder and `say`, and returns rows.
    It is imported when Django is set up.
    seconds: the time budget of the part, preparations included.
    """

    function: str
    seconds: int


PARTS = {
    "import": Part("bench.importing:speed", 60),
    "watching": Part("bench.importing:watching", 90),
    "listing": Part("bench.importing:listing", 90),
    "growth": Part("bench.importing:growth", 150),
    "endpoint": Part("bench.endpoint:endpoint", 180),
    "workers": Part("bench.endpoint:workers", 40),
    "traces": Part("bench.traces:traces", 90),
    "records": Part("bench.records:records", 60),
    "sockets": Part("bench.sockets:sockets", 70),
    "worst": Part("bench.worst:worst", 140),
    "admin": Part("bench.admin:admin", 120),
    "live": Part("bench.live:live", 120),
    "reads": Part("bench.reads:reads", 180),
    "storage": Part("bench.storage:storage", 50),
    "checkpoint": Part("bench.checkpoint:checkpoint", 150),
}
"""All parts. Together they take at most 26 minutes."""


def main(name: str, path: Path) -> None:
    """Run a part, and write its rows to a file."""
    part = PARTS[name]
    set_budget(part.seconds)
    module, _, function = part.function.partition(":")
    with own_services() as folder:
        measure = getattr(import_module(module), function)
        rows = measure(folder, say)
    report.write_json(path, rows, machine())


@contextmanager
def own_services() -> Iterator[Path]:
    """Run new embedded services during a `with` block, and yield their VAR_DIR.

    Django is set up and all migrations are applied. Use this only once in a process.
    """
    folder = Path(tempfile.mkdtemp(prefix="portcullis-bench-"))
    for name in ("DATABASE_URL", "REDIS_URL"):
        os.environ.pop(name, None)
    os.environ["VAR_DIR"] = str(folder)
    os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
    os.environ.setdefault("LOG_LEVEL", "WARNING")
    try:
        from config import services

        with services.running():
            import django
            from django.core.management import call_command

            django.setup()
            call_command("migrate", verbosity=0)
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
