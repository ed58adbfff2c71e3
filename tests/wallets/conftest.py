from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tests.support.wallet import Rig, running_wallet
from wallets.service import Wallet


@pytest.fixture(scope="module")
def parts(module_db: None) -> Iterator[tuple[asyncio.Runner, Wallet]]:
    """Return the parts of a serving process, with an event loop that runs when asked."""
    with running_wallet() as started:
        yield started


@pytest.fixture
def rig(parts: tuple[asyncio.Runner, Wallet]) -> Rig:
    """Return a new user with accounts and a dapp, on parts that a module shares."""
    return Rig(*parts)
