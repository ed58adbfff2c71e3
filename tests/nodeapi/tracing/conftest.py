from __future__ import annotations

from collections.abc import Iterator

import pytest

from nodeapi.chain.database import importer_connection
from tests.nodeapi.tracing import chain
from tests.nodeapi.tracing.pools import BLOCKS
from tests.support import chains, copies


@pytest.fixture(scope="module")
def network_id(module_db: None) -> Iterator[int]:
    copies.chain("tracing", chain.genesis(), BLOCKS)
    with importer_connection() as connection:
        yield chains.network_id(connection, "tracing")
