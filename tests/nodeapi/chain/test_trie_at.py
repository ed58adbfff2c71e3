"""The tries after any block: proofs for values, roots for changes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from evm.changes import AccountValue, Changes
from evm.world import EMPTY_CODE_HASH
from nodeapi.chain.branch import StateMismatch
from nodeapi.chain.database import importer_connection
from nodeapi.chain.trie_at import TooManyChanges, rewind, trie_at
from samples.signers import create_address
from tests.nodeapi.chain.proving import ABSENT, check_proofs
from tests.nodeapi.chain.trees import ALICE, BOB, genesis, tree
from tests.support import chains

pytestmark = pytest.mark.django_db(transaction=True)

SLUG = "tree"
NODES = tree()
SLOTS = create_address(ALICE.address, 0)
"""The contract whose slots each block writes."""


@pytest.fixture
def connection() -> Iterator[psycopg.Connection[Any]]:
    """Import every block of the tree, so that most are side blocks."""
    chains.import_blocks(SLUG, genesis(), [node.raw for node in NODES.values()])
    with importer_connection() as opened:
        yield opened


def network(connection: psycopg.Connection[Any]) -> int:
    return chains.network_id(connection, SLUG)


def test_proofs_after_each_block_are_accepted_by_the_reference_library(
    connection: psycopg.Connection[Any],
) -> None:
    kinds = set()
    for node in NODES.values():
        row = connection.execute(
            "SELECT is_canonical FROM nodeapi_block WHERE hash = %s", (node.hash,)
        ).fetchone()
        assert row is not None
        kinds.add(row[0])
        check_proofs(trie_at(connection, network(connection), node.hash), node.state)
    assert kinds == {True, False}


def test_changes_on_top_of_any_block_give_the_root_of_the_whole_state(
    connection: psycopg.Connection[Any],
) -> None:
    for node in NODES.values():
        changes = Changes(accounts={ABSENT: AccountValue(1, 2, EMPTY_CODE_HASH, None)})
        changes.accounts[BOB.address] = None
        changes.accounts[SLOTS] = node.state.account(SLOTS)
        changes.storage[SLOTS] = {0: 0, 1: 5, 1000: 7}
        expected = node.state.copy().root_after(copied(changes))
        nodes = rewind(connection, network(connection), node.hash)
        assert nodes.open().apply(copied(changes)) == expected
        # The tries of one caller do not change those of another one.
        assert nodes.open().apply(copied(changes)) == expected


def test_a_block_with_too_many_later_changes_is_refused(
    connection: psycopg.Connection[Any],
) -> None:
    number = network(connection)
    oldest = NODES["t1"].hash
    with pytest.raises(TooManyChanges):
        trie_at(connection, number, oldest, max_changes=3)
    row = connection.execute(
        "SELECT head_hash FROM networks_network WHERE id = %s", (number,)
    ).fetchone()
    assert row is not None
    trie_at(connection, number, row[0], max_changes=0)


def test_an_unknown_block_is_an_error(connection: psycopg.Connection[Any]) -> None:
    with pytest.raises(LookupError):
        trie_at(connection, network(connection), b"\x99" * 32)


@pytest.mark.parametrize("table", ["accountversion", "storageversion"])
def test_rows_that_do_not_give_the_block_s_roots_are_an_error(
    connection: psycopg.Connection[Any], table: str
) -> None:
    number = network(connection)
    if table == "accountversion":
        connection.execute(
            "UPDATE nodeapi_accountversion SET balance = balance + 1"
            " WHERE address = %s AND block_number = 0",
            (ALICE.address,),
        )
        connection.execute(
            "DELETE FROM nodeapi_accountversion WHERE address = %s"
            " AND block_number = 1",
            (ALICE.address,),
        )
        with pytest.raises(StateMismatch):
            trie_at(connection, number, NODES["t1"].hash)
    else:
        node = NODES["b2"]
        connection.execute(
            "UPDATE nodeapi_storageversion SET value = '\\x05'"
            " WHERE address = %s AND slot = %s AND block_number = 2",
            (SLOTS, bytes(32)),
        )
        tries = trie_at(connection, number, node.hash)
        with pytest.raises(StateMismatch):
            tries.prove_slots(SLOTS, [0])


def copied(changes: Changes) -> Changes:
    """Return a copy, because tries write storage roots into changes."""
    copy = Changes()
    copy.apply(changes)
    return copy
