"""The methods that the wallet offers on a network, which the network supports."""

from __future__ import annotations

import pytest

from keys.services import grant_entitlement
from networks.models import Network, NetworkState
from networks.services import configure_network
from nodeapi.methods import registry
from tests.support.wallet import served_chains
from wallets import internal_key
from wallets.offers import wallet_offer
from wallets.pages.words import pooling_scopes, scope_names
from wallets.permissions import Group, group_of

FLAT = {"trace_block", "trace_filter", "trace_get", "trace_transaction"}
CALLS = {
    *("ots_traceTransaction", "ots_getInternalOperations"),
    "portcullis_compareForks",
}
FREE = {"debug_storageRangeAt", "debug_intermediateRoots", "debug_executionWitness"}


@pytest.fixture
def network(db: None) -> Network:
    served_chains()
    return Network.objects.get(chain_id=1)


def methods() -> tuple[str, ...]:
    return wallet_offer(can_sign=True)["eip155:1"].methods


def traces(network: Network, granted: list[str], offered: list[str]) -> set[str]:
    Network.objects.filter(pk=network.pk).update(tracers=offered)
    grant_entitlement(api_key=internal_key.ensure(), network=network, tracers=granted)
    return set(wallet_offer(can_sign=True)["eip155:1"].on_request)


def test_waiting_for_receipts_is_offered_where_blocks_include_transactions(
    network: Network,
):
    assert "eth_sendRawTransactionSync" not in methods()
    assert "eth_sendRawTransaction" in methods()
    assert "eip155:1" in pooling_scopes()
    configure_network(network=network, upstream_urls=["http://node.example"])
    assert "eth_sendRawTransactionSync" in methods()
    assert "eip155:1" not in pooling_scopes()
    network.upstreams.update(is_enabled=False)
    assert "eth_sendRawTransactionSync" not in methods()


def test_name_is_that_of_the_network_that_the_wallet_uses(network: Network):
    Network.objects.filter(pk=network.pk).update(state=NetworkState.HIDDEN)
    newer = Network.objects.get(pk=network.pk)
    newer.pk, newer.slug, newer.name = None, "newer", "The newer one"
    newer.state = NetworkState.VISIBLE
    newer.save(force_insert=True)
    assert scope_names()["eip155:1"] == "The newer one"
    Network.objects.filter(pk=newer.pk).update(state=NetworkState.HIDDEN)
    assert scope_names()["eip155:1"] == (network.name or network.slug)


def test_traces_are_offered_as_far_as_a_tracer_makes_them(network: Network):
    every = ["callTracer", "flatCallTracer", "structLog"]
    found = traces(network, [], every)
    capable = {method.name for method in registry if method.capability == "trace"}
    assert found == capable
    assert {group_of(name) for name in found} == {Group.TRACE}
    assert found - traces(network, ["structLog"], every) == FLAT | CALLS
    assert found - traces(network, ["callTracer"], every) == FLAT
    assert found - traces(network, ["flatCallTracer"], every) == CALLS
    assert traces(network, ["flatCallTracer"], ["callTracer"]) == FREE
    assert traces(network, [], []) == FREE


def test_nothing_is_traced_without_a_grant(network: Network):
    internal_key.ensure()
    assert wallet_offer(can_sign=True)["eip155:1"].on_request == ()
