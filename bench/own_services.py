"""A temporary PostgreSQL and Redis for the benchmark."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


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
