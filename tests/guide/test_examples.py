"""Example arguments refer to existing objects, and are read with few rows."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from guide.examples import SEARCHED_ACCOUNTS, examples
from networks.models import Network
from samples.builder import ChainBuilder
from tests.explorer.chain import ALICE, GAS_PRICE_WEI, MIXED, genesis
from tests.support import chains

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_slot_is_looked_for_account_by_account() -> None:
    chain = ChainBuilder(genesis())
    price = {"gas_price": GAS_PRICE_WEI}
    receivers = [bytes([number]) * 20 for number in range(1, SEARCHED_ACCOUNTS + 5)]
    chain.send(ALICE, receivers[0], gas=21_000, **price)
    chain.send(ALICE, MIXED, gas=2_000_000, **price)
    chain.send(ALICE, MIXED, gas=2_000_000, **price)
    with_contract = chain.block()
    for receiver in receivers:
        chain.send(ALICE, receiver, gas=21_000, **price)
    without = chain.block()

    chains.import_blocks("net", genesis(), [with_contract])
    found = examples(Network.objects.get(slug="net"))
    assert found["blockHash"] == f"0x{with_contract.header.hash.hex()}"
    assert found["transactionIndex"] == "0x1"
    assert found["address"] == f"0x{MIXED.hex()}"
    assert int(found["storagePosition"], 16) == 1

    chains.import_blocks("net", genesis(), [without])
    network = Network.objects.get(slug="net")
    with CaptureQueriesContext(connection) as queries:
        found = examples(network)
    assert found["address"] == f"0x{receivers[0].hex()}"
    assert found["storagePosition"] == "0x0"
    asked = [q["sql"] for q in queries if "nodeapi_storageversion" in q["sql"]]
    assert len(asked) == SEARCHED_ACCOUNTS
    # For several accounts, PostgreSQL 16 would read and sort all their slots.
    assert not any('"address" IN' in sql for sql in asked)
