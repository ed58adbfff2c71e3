"""Fixtures of all tests. Each test process has a PostgreSQL and a Redis."""

from __future__ import annotations

import gc
import importlib
import os
import select
import shutil
import warnings
from collections.abc import Generator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.core.management import call_command
from django.db import connection, connections
from django.test import TransactionTestCase
from django.test.utils import setup_databases, teardown_databases
from hypothesis import HealthCheck, settings
from xdist.workermanage import NodeManager

from config import services
from server import forking
from server.supervisor import Server
from tests.support import leftovers, shared_forks
from tests.support.installation import copy_database
from tests.support.service import run_service
from tests.support.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from tests.support.browser import Chromium

# Benchmarks measure speed. No property test has a deadline.
settings.register_profile(
    "unhurried",
    max_examples=50,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("unhurried")


@pytest.fixture(scope="session")
def var_dir() -> Path:
    """Return this run's own VAR_DIR."""
    return Path(os.environ["VAR_DIR"])


@pytest.fixture(scope="session")
def running_services(var_dir: Path) -> Iterator[None]:
    """Run the embedded services from the first test that needs them until the end."""
    leftovers.sweep()
    if not os.environ.get("DATABASE_URL"):
        copy_database(var_dir)
    with services.running():
        yield


@pytest.fixture(scope="session")
def redis_url(running_services: None) -> str:
    """Return the URL of the running Redis."""
    return services.redis_url()


@pytest.fixture(scope="session")
def django_db_setup(
    running_services: None, django_test_environment: None, django_db_blocker: Any
) -> Iterator[None]:
    """Create the test database when the services are running.

    pytest-django's own fixture creates none if no selected test has its marker, and
    tests with `module_db` do not have it.
    """
    with django_db_blocker.unblock():
        names = setup_databases(verbosity=0, interactive=False)
        # Every test starts with the rows that a flush keeps, such as the default plan.
        call_command("flush", verbosity=0, interactive=False)
    yield
    with django_db_blocker.unblock():
        end_other_sessions()
        teardown_databases(names, verbosity=0)


def end_other_sessions() -> None:
    """End the database sessions of other processes and threads.

    PostgreSQL notices only at the end of a statement that its client was killed. Until
    then the database can't be dropped.
    """
    connections.close_all()  # this process's session may have been ended, too
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def is_lost(_: object = None) -> bool:
    """Return whether this thread's connection to the database was terminated.

    Only then something can be read from it, while no query is being answered.
    """
    if connection.connection is None or connection.connection.closed:
        return connection.connection is not None
    waiting = select.poll()
    waiting.register(connection.connection.fileno(), select.POLLIN)
    return bool(waiting.poll(0)) and not connection.is_usable()


# A new session reads the catalogue again, which takes longer than most tests.
TransactionTestCase._should_reload_connections = is_lost  # type: ignore[method-assign]


def close_lost() -> None:
    """Close this thread's connection to the database if it was terminated."""
    if is_lost():
        connection.close()


@pytest.fixture(autouse=True)
def own_connections() -> None:
    """Close a connection before each test if it was terminated."""
    close_lost()


@pytest.fixture(scope="module")
def module_db(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """Give all tests of a module access to the database, and empty it afterwards.

    It is meant for chains that many tests only read. These tests may not request another
    database fixture, because its end would empty the database before the next test.
    """
    with django_db_blocker.unblock():
        close_lost()
        yield
        close_lost()
        call_command("flush", verbosity=0, interactive=False)


@pytest.fixture(scope="module")
def service(module_db: None) -> Iterator[Server]:
    """Run the server in a process of its own for a module, with an empty database."""
    with run_service() as running:
        yield running


@pytest.fixture(scope="session")
def chromium() -> Iterator[Chromium]:
    """Run the Chromium of this test process."""
    from tests.support.browser import Chromium  # other runs need no Playwright

    running = Chromium()
    yield running
    running.close()


@pytest.fixture(scope="module")
def browser(chromium: Chromium) -> Iterator[Browser]:
    """Return a Chromium; tests that use it are marked `needs_chromium`."""
    with chromium.lent() as running:
        yield running


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of tests/conformance and tests/clients."""
    parser.addoption(
        "--execution-apis",
        metavar="DIR",
        help="folder with chain.rlp, genesis.json and recorded answers (*/*.io)",
    )
    parser.addoption(
        "--geth-tracers",
        metavar="DIR",
        help="folder of cases in the format of go-ethereum's tracer tests",
    )
    parser.addoption(
        "--write-clients-table",
        action="store_true",
        help="write the table of docs/clients.md from the run of the clients",
    )


FORKS = Path(os.environ["TESTS_SHARED_DIR"]) / "forks"
"""The address of the fork servers of several test processes."""

LONGEST = (
    "tests/golden/test_golden.py",
    "tests/browser/test_every_page.py",
    "tests/wallets/faults/test_floods.py",
    "tests/config/test_serve.py",
    "tests/browser/test_customers.py",
    "tests/config/test_odd_requests.py",
    "tests/wallets/faults/test_outages.py",
    "tests/nodeapi/follower/test_lies.py",
    "tests/nodeapi/chain/test_crashes.py",
    "tests/config/test_outage_log.py",
    "tests/nodeapi/follower/test_faults.py",
    "tests/nodeapi/test_memory_bounds_live.py",
    "tests/config/test_health.py",
    "tests/fuzz/test_bodies.py",
    "tests/config/test_upgrade.py",
    "tests/browser/test_wallet.py",
    "tests/wallets/pages/test_connect_windows.py",
    "tests/nodeapi/test_long_traces_live.py",
    "tests/config/test_follow.py",
    "tests/keys/api/test_odd_input.py",
    "tests/clients/test_extraction.py",
)
"""Files that take long, the longest first. They run before the others, so that none
runs alone at the end.
"""


@pytest.hookimpl(trylast=True)  # after they were shuffled
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files first. The test processes take files in this order."""
    order = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: order.get(item.nodeid.partition("::")[0], len(order)))


def pytest_xdist_auto_num_workers() -> int:
    """Return the number of test processes. It exceeds the processors, because tests wait."""
    return 2 * (os.cpu_count() or 1)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Collect without garbage collection, and exclude the collected tests from it later.

    Before, several test processes import a part of the test modules each.
    """
    gc.disable()
    try:
        _import_part(session)
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(20_000, 20, 20)
        gc.enable()


def _import_part(session: pytest.Session) -> None:
    """Import this test process's part of the test modules.

    In a new clone, pytest compiles each module when it is imported, which takes longer than
    all other work of the collection. Processes that import the modules in the same order
    would all do that at the same time; the others read what one of them has compiled.
    """
    if not (worker := os.environ.get("PYTEST_XDIST_WORKER")):
        return
    files = sorted(
        file.relative_to(session.config.rootpath)
        for argument in session.config.args
        for file in Path(argument).absolute().rglob("test_*.py")
    )
    count = int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
    for file in files[int(worker.removeprefix("gw")) :: count]:
        # The collection reports a module that can't be imported.
        with warnings.catch_warnings(), suppress(Exception):
            warnings.simplefilter("error")
            importlib.import_module(".".join(file.with_suffix("").parts))


def pytest_collection_finish() -> None:
    """Prepare for servers."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared_forks.use(FORKS)
    else:
        forking.shared.module = shared_forks.MODULE


def pytest_configure(config: pytest.Config) -> None:
    """Prepare for several test processes, if this one starts them.

    They clean up at their end. By default, pytest-xdist kills those that take more than ten
    seconds, and Python warns of subprocesses that are still running.
    """
    if config.getoption("numprocesses"):
        NodeManager.EXIT_TIMEOUT = PATIENCE_SECONDS
        shared_forks.offer(FORKS)


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the fork server, and remove this run's VAR_DIR."""
    forking.shared.close()
    shutil.rmtree(os.environ["VAR_DIR"], ignore_errors=True)
