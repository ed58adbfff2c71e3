from __future__ import annotations

import itertools

import pytest
from django.test import Client

from keys.models import User
from tests.explorer import chain
from tests.explorer.pages import PASSWORD
from tests.support import chains, copies
from tests.support.showcase import forget_facts

_numbers = itertools.count()


@pytest.fixture(scope="module")
def hard_network(module_db: None) -> None:
    """The chain of hard transactions as the networks `hard` and `other`."""
    copies.once("hard transactions", _import_hard)


def _import_hard() -> None:
    blocks = chain.blocks()
    for slug in ("hard", "other"):
        chains.import_blocks(slug, chain.genesis(), blocks)


@pytest.fixture(scope="module")
def staff(hard_network: None) -> Client:
    client = Client()
    client.force_login(User.objects.create_user("staff@example.org", is_staff=True))
    return client


@pytest.fixture
def customer() -> User:
    """Return a new customer. Tests do not share one, because its rows are not deleted."""
    return User.objects.create_user(f"customer{next(_numbers)}@example.org", PASSWORD)


@pytest.fixture(autouse=True)
def no_facts_of_other_tests() -> None:
    forget_facts()
