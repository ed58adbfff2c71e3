"""The oldest blocks with each kind of data, and the window of proofs."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from jsonrpc.answers import Reply
from jsonrpc.dispatch import Dispatcher, Limits
from keys.grants import Grant
from keys.permits import NO_PERMITS
from networks.models import Network
from networks.services import configure_network
from nodeapi.chain.database import importer_connection
from nodeapi.chain.trie_at import TooManyChanges, trie_at
from nodeapi.methods import registry
from nodeapi.methods.context import Context
from nodeapi.models import Block
from nodeapi.results import proofs
from nodeapi.store import kept
from nodeapi.store.kept import KeptData
from tests.nodeapi.chain.trees import genesis, tree
from tests.support import chains
from tests.support.serving import Serving, serving

pytestmark = pytest.mark.django_db(transaction=True)

LINE = [tree()[name].raw for name in tree()["b5"].line]
HEAD = len(LINE)


def imported(*, plain: int = 0, keep_proofs: int | str = 0) -> Network:
    """Import a chain. plain: its first blocks, which are imported without versions."""
    chains.import_blocks("kept", genesis(), LINE[:plain])
    network = Network.objects.get(slug="kept")
    configure_network(network=network, keep_proofs=keep_proofs)
    chains.import_blocks("kept", genesis(), LINE[plain:])
    return network


def is_proven(network: Network, number: int, max_changes: int) -> bool:
    block = Block.objects.get(network=network, number=number, is_canonical=True)
    with importer_connection() as connection:
        try:
            trie_at(connection, network.pk, bytes(block.hash), max_changes=max_changes)
        except TooManyChanges:
            return False
    return True


def kept_data(running: Serving, network: Network) -> Any:
    return running.ask(running.service.store.kept_data, network.pk)


def capabilities(running: Serving) -> Any:
    """Return the result of eth_capabilities."""
    service = running.service
    view = service.directory.by_slug("kept")
    assert view is not None
    grant = Grant(1, "customer", None, NO_PERMITS, None)
    context = Context(b"1", grant, view, service.store)
    call = {"jsonrpc": "2.0", "id": 1, "method": "eth_capabilities", "params": []}
    dispatcher = Dispatcher(registry, Limits(), {})
    found = running.ask(lambda: dispatcher.respond(orjson.dumps(call), context))
    return orjson.loads(found.body if isinstance(found, Reply) else bytes(found))[
        "result"
    ]


@pytest.mark.parametrize("first_blocks", [1, 64])
@pytest.mark.parametrize("max_changes", [0, 2, 5, 9, 10**6])
def test_oldest_proof_is_the_oldest_that_can_be_computed(
    monkeypatch: pytest.MonkeyPatch, max_changes: int, first_blocks: int
) -> None:
    monkeypatch.setattr(proofs, "MAX_CHANGES", max_changes)
    monkeypatch.setattr(kept, "_FIRST_BLOCKS", first_blocks)
    network = imported()
    proven = [n for n in range(HEAD + 1) if is_proven(network, n, max_changes)]
    assert proven == list(range(proven[0], HEAD + 1))
    with serving() as running:
        assert kept_data(running, network) == KeptData(0, 0, proven[0], None)


@pytest.mark.parametrize("keep_proofs", ["all", 64])
def test_kept_nodes_prove_older_blocks(
    monkeypatch: pytest.MonkeyPatch, keep_proofs: int | str
) -> None:
    monkeypatch.setattr(proofs, "MAX_CHANGES", 0)
    network = imported(plain=2, keep_proofs=keep_proofs)
    assert [is_proven(network, number, 0) for number in (1, 2)] == [False, True]
    window = None if keep_proofs == "all" else keep_proofs
    with serving() as running:
        assert kept_data(running, network) == KeptData(0, 0, 2, window)


def test_capabilities_name_the_oldest_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proofs, "MAX_CHANGES", 0)
    imported(plain=2, keep_proofs=64)
    whole = {"disabled": False, "oldestBlock": "0x0"}
    with serving() as running:
        found = capabilities(running)
        assert found.pop("head")["number"] == hex(HEAD)
        assert found == {
            **dict.fromkeys(("state", "tx", "logs", "receipts", "blocks"), whole),
            "stateproofs": {
                "disabled": False,
                "oldestBlock": "0x2",
                "deleteStrategy": {"type": "window", "retentionBlocks": "0x40"},
            },
        }
