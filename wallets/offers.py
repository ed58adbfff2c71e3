"""The methods and events that the wallet can grant on each chain at present."""

from __future__ import annotations

from functools import cache

from keys.models import ApiKey, Entitlement
from keys.permits import TRACE
from networks.models import Network, NetworkQuerySet, Tracer, Upstream
from nodeapi.methods import registry as node_methods
from wallets import internal_key
from wallets.caip import EIP155, WALLET, evm_scope
from wallets.models import Keystore
from wallets.permissions import (
    CHAIN_METHODS,
    EVM_WALLET_METHODS,
    SIGNING_METHODS,
    SUBSCRIPTION,
    without_signing,
)
from wallets.proposals import Known, Offer
from wallets.registries import chain_methods, own_methods
from wallets.scopes import Scopes

EVM_WALLET = f"{WALLET}:{EIP155}"
"""The scope of methods of the wallet itself that follow the conventions of EVM chains."""

_OF_UPSTREAMS = frozenset({"eth_sendRawTransactionSync"})
"""Methods that only work on networks with upstreams: without them, no block includes a
transaction, so that waiting for its receipt always times out."""

_TRACERS = {
    "trace_block": frozenset({Tracer.FLAT_CALL}),
    "trace_filter": frozenset({Tracer.FLAT_CALL}),
    "trace_get": frozenset({Tracer.FLAT_CALL}),
    "trace_transaction": frozenset({Tracer.FLAT_CALL}),
    "ots_traceTransaction": frozenset({Tracer.CALL}),
    "ots_getInternalOperations": frozenset({Tracer.CALL}),
    "portcullis_compareForks": frozenset({Tracer.CALL}),
}
"""The tracers of methods that always use the same one. Callers of other methods choose."""

_WITHOUT_TRACER = frozenset(
    {"debug_storageRangeAt", "debug_intermediateRoots", "debug_executionWitness"}
)
"""Methods that need the grant and no tracer."""


def offer_to(user_id: int) -> Offer:
    """Return the methods and events that a user can grant to dapps."""
    with_key = Keystore.objects.filter(account__user_id=user_id)
    return wallet_offer(can_sign=with_key.exists())


def without_unsignable(user_id: int, granted: Scopes) -> Scopes:
    """Return scopes without signing methods where none of the accounts has a key."""
    keystores = Keystore.objects.filter(account__user_id=user_id)
    with_key = set(keystores.values_list("account__address", flat=True))
    return {
        name: scope
        if any(account.rpartition(":")[2] in with_key for account in scope.accounts)
        else without_signing(scope)
        for name, scope in granted.items()
    }


def wallet_offer(*, can_sign: bool) -> Offer:
    """Return the grantable methods and events by scope, the oldest network first.

    can_sign: whether any of the user's accounts has a key.
    Traces are offered on networks on which staff have granted them to the wallet's API
    key, as far as one of the granted tracers makes them.
    """
    api_key = internal_key.find()
    granted = Entitlement.objects.live().filter(api_key=api_key, capability=TRACE)
    tracers = dict(granted.values_list("network_id", "tracers"))
    networks = _opened_by(api_key).visible().exclude(head_number=None)
    with_upstreams = set(
        Upstream.objects.filter(is_enabled=True).values_list("network_id", flat=True)
    )
    offer: dict[str, Known] = {}
    for network in networks:
        traces: tuple[str, ...] = ()
        if network.pk in tracers:
            permitted = tracers[network.pk] or network.tracers
            traces = _traces(frozenset(permitted) & frozenset(network.tracers))
        methods = _chain_methods(can_sign)
        if network.pk not in with_upstreams:
            methods = tuple(name for name in methods if name not in _OF_UPSTREAMS)
        known = Known(methods, (SUBSCRIPTION,), traces)
        # Of two networks with the same chain id the older one is the chain.
        offer.setdefault(evm_scope(network.chain_id), known)
    methods = tuple(name for name in EVM_WALLET_METHODS if own_methods.find(name))
    return {**offer, EVM_WALLET: Known(methods), WALLET: Known()}


def serves_chains() -> bool:
    """Return whether the wallet serves any chain at present."""
    networks = _opened_by(internal_key.find()).visible()
    return networks.exclude(head_number=None).exists()


def kept_scopes() -> frozenset[str]:
    """Return the scopes that existing sessions keep.

    A chain whose blocks are being imported again is not offered, but sessions keep it.
    """
    networks = _opened_by(internal_key.find())
    chains = map(evm_scope, networks.values_list("chain_id", flat=True))
    return frozenset({*chains, EVM_WALLET, WALLET})


def _opened_by(api_key: ApiKey | None) -> NetworkQuerySet:
    """Return the networks that the wallet's own key gives access to."""
    if api_key is None or not api_key.networks.exists():
        return Network.objects.all()
    return Network.objects.filter(api_keys=api_key)


@cache
def _chain_methods(can_sign: bool) -> tuple[str, ...]:
    """Return the methods that can be granted on a chain and that are implemented."""
    return tuple(
        name
        for name in CHAIN_METHODS
        if (chain_methods.find(name) or node_methods.find(name))
        and (can_sign or name not in SIGNING_METHODS)
    )


def _traces(tracers: frozenset[str]) -> tuple[str, ...]:
    """Return the tracing methods that some tracers make possible."""
    found = (method.name for method in node_methods if method.capability == TRACE)
    return tuple(
        name
        for name in found
        if name in _WITHOUT_TRACER or _TRACERS.get(name, tracers) & tracers
    )
