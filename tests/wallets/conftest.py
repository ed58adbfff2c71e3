from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tests.support.dapps import Owner
from tests.support.live import Live, live_service
from tests.support.wallet import Rig, running_wallet, served_chains
from wallets import internal_key
from wallets.methods import chain, confirmed, own, transactions  # noqa: F401
from wallets.serving.wallet import Wallet


@pytest.fixture(scope="module")
def parts(module_db: None) -> Iterator[tuple[asyncio.Runner, Wallet]]:
    """Return the parts of a serving process, with an event loop that runs during calls."""
    with running_wallet() as started:
        yield started


@pytest.fixture
def rig(parts: tuple[asyncio.Runner, Wallet]) -> Rig:
    """Return a new user with accounts and a dapp. The tests of a module share the parts."""
    return Rig(*parts)


@pytest.fixture(scope="module")
def live(module_db: None) -> Iterator[Live]:
    """Return a server of two processes."""
    served_chains()
    internal_key.ensure()
    with live_service(workers=2) as live:
        yield live


@pytest.fixture
def owner(live: Live) -> Owner:
    """Return U, who has paired P."""
    return Owner(live.base_url)
