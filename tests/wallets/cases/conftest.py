from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.dapps import Owner
from tests.support.live import Live, live_service
from tests.support.wallet import served_chains
from wallets import internal_key


@pytest.fixture(scope="module")
def live(module_db: None) -> Iterator[Live]:
    served_chains()
    internal_key.ensure()
    with live_service(workers=2) as live:
        yield live


@pytest.fixture
def owner(live: Live) -> Owner:
    """Return U, who has paired P."""
    return Owner(live.base_url)
