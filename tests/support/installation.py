"""A separate installation for a test: a VAR_DIR with its own services and data."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from config import services
from config.embedded import postgres
from server import forking
from tests.support import commands, sample


class Installation:
    """A migrated database that may be stopped, killed and started by a test.

    address: of the database.
    forks: the fork server of its commands.
    """

    def __init__(self, var_dir: Path) -> None:
        self.env = {"VAR_DIR": str(var_dir), "DATABASE_URL": "", "REDIS_URL": ""}
        self.database = postgres.PostgresServer(var_dir)
        self.address = postgres.address(var_dir)
        self.forks = forking.shared

    def manage(self, *arguments: str) -> str:
        """Run a management command; returns what it has printed."""
        return commands.checked(*arguments, environ=self.env, forks=self.forks)

    def new_key(self) -> str:
        """Issue a key for all networks."""
        printed = self.manage("issue_key", "--owner", "owner@example.org", "--json")
        issued: dict[str, Any] = json.loads(printed)
        key: str = issued["api_key"]
        return key

    def connect(self) -> psycopg.Connection[Any]:
        """Connect to the database."""
        return psycopg.connect(self.address, autocommit=True)


@contextmanager
def installation(*, with_chain: bool = False) -> Iterator[Installation]:
    """Yield an installation with empty tables.

    with_chain: whether it has the sample chain, as the network `net`.
    """
    if os.environ.get("DATABASE_URL"):
        pytest.skip("the database is not ours to stop")
    with _folder() as folder:
        copy_database(folder, with_chain=with_chain)
        with services.running(folder):
            yield Installation(folder)


def copy_database(var_dir: Path, *, with_chain: bool = False) -> None:
    """Give a VAR_DIR the database of an installation, which is not running."""
    _copy(_template(with_chain), var_dir / "postgres")


def _template(with_chain: bool) -> Path:
    """Return the data of a stopped database, which the first test process creates."""
    shared = Path(os.environ["TESTS_SHARED_DIR"])
    template = shared / ("chain" if with_chain else "tables")
    tables = _template(with_chain=False) if with_chain else None
    with (shared / "templates.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not template.exists():
            with _folder() as folder:
                if tables is not None:
                    _copy(tables, folder / "postgres")
                with services.running(folder):
                    if tables is None:
                        _create_tables(Installation(folder))
                    else:
                        _import_chain(Installation(folder))
                _copy(folder / "postgres", template)
    return template


def _create_tables(found: Installation) -> None:
    """Create the tables of an installation whose keys have no limits."""
    found.manage("migrate", "--verbosity", "0")
    with found.connect() as connection:
        connection.execute("DELETE FROM keys_plan")


def _import_chain(found: Installation) -> None:
    """Import the sample chain as the network `net`."""
    genesis, chain = str(sample.GENESIS_FILE), str(sample.CHAIN_FILE)
    found.manage("import_chain", "--network", "net", "--genesis", genesis, chain)


@contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="portcullis-own-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def _copy(source: Path, target: Path) -> None:
    """Copy a folder with the owners of its files."""
    draft = target.with_name(f"{target.name}.draft")
    subprocess.run(["cp", "-a", str(source), str(draft)], check=True)
    draft.rename(target)
