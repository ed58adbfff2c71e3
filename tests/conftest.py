"""What all tests share: one PostgreSQL and one Redis for the whole run."""

from __future__ import annotations

import gc
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection, connections
from django.test.utils import setup_databases, teardown_databases
from hypothesis import HealthCheck, settings
from xdist.workermanage import NodeManager

from config import services
from config.server import Server
from tests.support import leftovers
from tests.support.service import run_service
from tests.support.waiting import PATIENCE_SECONDS

# How quick something is belongs into benchmarks, and not into properties either.
settings.register_profile(
    "unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("unhurried")


@pytest.fixture(scope="session")
def var_dir() -> Path:
    """Return this run's own VAR_DIR."""
    return Path(os.environ["VAR_DIR"])


@pytest.fixture(scope="session")
def running_services() -> Iterator[None]:
    """Keep the embedded services up from the first test that wants them."""
    leftovers.sweep()
    with services.running():
        yield


@pytest.fixture(scope="session")
def redis_url(running_services: None) -> str:
    """Return the address of a Redis that runs."""
    return services.redis_url()


@pytest.fixture(scope="session")
def django_db_setup(
    running_services: None, django_test_environment: None, django_db_blocker: Any
) -> Iterator[None]:
    """Make the test database, once there is a server to make it on.

    pytest-django's own fixture makes none when no chosen test has its marker, and
    tests with `module_db` have not.
    """
    with django_db_blocker.unblock():
        names = setup_databases(verbosity=0, interactive=False)
        # Each test finds what the flush after another one leaves: no plan limits it.
        call_command("flush", verbosity=0, interactive=False)
    yield
    with django_db_blocker.unblock():
        teardown_databases(names, verbosity=0)


@pytest.fixture(scope="module", autouse=True)
def own_connections() -> None:
    """Begin each module without connections: those that are open may have been cut."""
    connections.close_all()


@pytest.fixture(scope="module")
def module_db(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """Open the database to a whole module, and empty it when the module is over.

    For chains that many tests only read; none of them may ask for another database
    fixture, whose end would empty it under the others.
    """
    with django_db_blocker.unblock():
        if not connection.is_usable():  # cut since the module began
            connection.close()
        yield
        call_command("flush", verbosity=0, interactive=False)
        connections.close_all()


@pytest.fixture(scope="module")
def service(module_db: None) -> Iterator[Server]:
    """Serve a database without rows to a module, from a process of its own."""
    with run_service() as running:
        yield running


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take the folder of tracer cases for tests/conformance."""
    parser.addoption(
        "--geth-tracers",
        metavar="DIR",
        help="folder of cases in the format of go-ethereum's tracer tests",
    )


LONGEST = (
    "tests/fuzz/test_bodies.py",
    "tests/nodeapi/test_long_derivations_live.py",
    "tests/wallets/faults/test_floods.py",
    "tests/browser/test_every_page.py",
)
"""Files of a minute or more. Begun last, each would run on when all others are done."""


@pytest.hookimpl(trylast=True)  # they have been shuffled by then
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest files; processes take them up in this order."""
    items.sort(key=lambda item: not item.nodeid.startswith(LONGEST))


def pytest_collection_finish() -> None:
    """Spare the garbage collector what stays until the end: some thousand tests."""
    gc.collect()
    gc.freeze()


def pytest_configure() -> None:
    """Have pytest-xdist wait for its processes as long as it takes.

    They clean up at their end. Those that are killed for taking more than ten seconds are
    not waited for, and Python complains of subprocesses that are still running.
    """
    NodeManager.EXIT_TIMEOUT = PATIENCE_SECONDS


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove this run's VAR_DIR."""
    shutil.rmtree(os.environ["VAR_DIR"], ignore_errors=True)
