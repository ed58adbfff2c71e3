"""What all tests share: one PostgreSQL and one Redis for the whole run."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from config import services
from config.server import Server
from tests.support import leftovers
from tests.support.service import run_service


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
def django_db_setup(running_services: None, django_db_setup: None) -> None:
    """Make the test database, once there is a server to make it on."""


@pytest.fixture
def service(transactional_db: None) -> Iterator[Server]:
    """Serve the test database for one test, from a process of its own."""
    with run_service() as running:
        yield running


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove this run's VAR_DIR."""
    shutil.rmtree(os.environ["VAR_DIR"], ignore_errors=True)
