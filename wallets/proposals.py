"""From a wallet_createSession to what the user is asked, and on to what he grants.

A request, as MetaMask treats it, is a wish: what the wallet can't do is left out, what it
can do beyond the wish is not offered, and what the user leaves ticked is the session.
Source: https://chainagnostic.org/CAIPs/caip-25
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from wallets import scopes as scope_objects
from wallets.caip import Address
from wallets.errors import ScopesNotSupported
from wallets.permissions import Group, groups_of, only
from wallets.scopes import ScopeObject, Scopes, unique

MAX_SESSION_AGE = timedelta(days=365)
"""The furthest expiry that a dapp may ask for."""

_TIMESTAMP = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?"
    r"([Zz]|[+-][0-9]{2}:[0-9]{2})"
)
"""RFC 3339, which is narrower than what Python reads as ISO 8601."""


@dataclass(frozen=True, slots=True)
class Known:
    """What the wallet can do in one scope, in the order in which it is granted.

    on_request: methods that are granted to those who name them, and to nobody else.
    """

    methods: tuple[str, ...] = ()
    notifications: tuple[str, ...] = ()
    on_request: tuple[str, ...] = ()

    @property
    def all_methods(self) -> tuple[str, ...]:
        """Every method that may be granted."""
        return self.methods + self.on_request


Offer = Mapping[str, Known]
"""All that a user's wallet can do, by scope."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a dapp may get of what it has asked for.

    scopes: without accounts: those are one choice for all chains of a namespace.
    addresses: that it would like to see preselected; whoever's they are.
    unsupported: scopes that it has asked for and that the wallet doesn't serve.
    expires_at: when it wants the session to end, None for never.
    """

    scopes: Scopes
    addresses: tuple[Address, ...] = ()
    unsupported: tuple[str, ...] = ()
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """What a user has left ticked.

    scopes: names of scopes; an unknown one is an error.
    """

    scopes: frozenset[str]
    groups: frozenset[Group] = field(default_factory=lambda: frozenset(Group))
    addresses: frozenset[Address] = frozenset()


class NothingChosen(ValueError):
    """Raised when what a user has left ticked makes no session."""


def plan(wanted: Scopes, offer: Offer, expires_at: datetime | None = None) -> Proposal:
    """Return what a dapp may get of what it wants.

    Raises: ScopesNotSupported when that is nothing.
    """
    served = {name: scope for name, scope in wanted.items() if name in offer}
    if not served:
        raise ScopesNotSupported
    return Proposal(
        scopes={name: _narrowed(scope, offer[name]) for name, scope in served.items()},
        addresses=scope_objects.requested_addresses(served),
        unsupported=tuple(name for name in wanted if name not in offer),
        expires_at=expires_at,
    )


def together(existing: Scopes, proposal: Proposal, offer: Offer) -> Scopes:
    """Return the scopes that a user is asked about, without accounts.

    What the dapp may do already comes first, as far as the wallet still does it.
    """
    merged: dict[str, ScopeObject] = {}
    for name, scope in [*existing.items(), *proposal.scopes.items()]:
        if name in offer:
            known = scope_objects.union(merged.get(name, ScopeObject()), scope)
            merged[name] = replace(_ordered(known, offer[name]), accounts=())
    return merged


def preselected(
    existing: Scopes, wishes: Sequence[Address], own: Sequence[Address]
) -> tuple[Address, ...]:
    """Return the addresses that are ticked before the user has looked.

    own: all of his, his favourite of each namespace first. Of a namespace of which
        nothing is wished for or in use, that is ticked.
    """
    wanted = {*scope_objects.requested_addresses(existing), *wishes}
    ticked = [address for address in own if address in wanted]
    served = {address.namespace for address in ticked}
    for address in own:
        if address.namespace not in served:
            ticked.append(address)
            served.add(address.namespace)
    return tuple(address for address in own if address in ticked)


def grant(scopes: Scopes, choice: Choice, own: Sequence[Address]) -> Scopes:
    """Return the session's scopes: what was offered, as far as it was left ticked.

    own: the user's addresses, in the order in which dapps see them.
    Raises: NothingChosen.
    """
    if not choice.scopes <= scopes.keys():
        raise NothingChosen("A network was chosen that is not on offer.")
    if not choice.addresses <= set(own):
        raise NothingChosen("An account was chosen that is not one of yours.")
    chosen = {
        name: only(scope, choice.groups)
        for name, scope in scopes.items()
        if name in choice.scopes
    }
    addresses = [address for address in own if address in choice.addresses]
    granted = scope_objects.with_addresses(chosen, addresses)
    if not granted:
        raise NothingChosen("Choose at least one network.")
    if not addresses and scope_objects.has_chain(granted):
        raise NothingChosen("Choose at least one account.")
    return granted


def edited(
    existing: Scopes, offer: Offer, choice: Choice, own: Sequence[Address]
) -> Scopes:
    """Return a session's scopes after the user has edited them; {} when it is over.

    Groups that he allows now and did not before come with all of their methods; within
    the others what was not granted stays so.
    Raises: NothingChosen for what is not on offer.
    """
    if not choice.scopes <= existing.keys() | offer.keys():
        raise NothingChosen("A network was chosen that is not on offer.")
    if not choice.addresses <= set(own):
        raise NothingChosen("An account was chosen that is not one of yours.")
    new_groups = choice.groups - groups_of(existing.values())
    chosen: dict[str, ScopeObject] = {}
    for name in [*existing, *(name for name in offer if name not in existing)]:
        if name in choice.scopes:
            known = offer.get(name, Known())
            full = ScopeObject(known.methods, known.notifications)
            old = existing.get(name, full)
            wanted = scope_objects.union(old, only(full, new_groups))
            chosen[name] = only(_ordered(wanted, known), choice.groups)
    addresses = [address for address in own if address in choice.addresses]
    return scope_objects.worth_keeping(scope_objects.with_addresses(chosen, addresses))


def to_stored(proposal: Proposal) -> dict[str, Any]:
    """Return a proposal as it is kept while the user thinks about it."""
    expires_at = proposal.expires_at
    return {
        "scopes": scope_objects.to_stored(proposal.scopes),
        "addresses": [list(address) for address in proposal.addresses],
        "unsupported": list(proposal.unsupported),
        "expires_at": None if expires_at is None else expires_at.isoformat(),
    }


def from_stored(stored: Mapping[str, Any]) -> Proposal:
    """Return the proposal that was kept."""
    moment = stored["expires_at"]
    return Proposal(
        scopes=scope_objects.from_stored(stored["scopes"]),
        addresses=tuple(Address(*address) for address in stored["addresses"]),
        unsupported=tuple(stored["unsupported"]),
        expires_at=None if moment is None else datetime.fromisoformat(moment),
    )


def decode_properties(value: Any) -> dict[str, Any]:
    """Read `sessionProperties`.

    Raises: ShapeError.
    """
    if not isinstance(value, dict):
        raise scope_objects.ShapeError("", "expected an object")
    return value


def wanted_expiry(properties: Mapping[str, Any], now: datetime) -> datetime | None:
    """Return when a dapp wants its session to end, None when it doesn't say.

    The only property that the wallet knows; what is no moment in the future is ignored,
    like everything unknown. Whole seconds, and no further than MAX_SESSION_AGE.
    """
    text = properties.get("expiry")
    if not isinstance(text, str) or not _TIMESTAMP.fullmatch(text):
        return None
    try:
        moment = datetime.fromisoformat(text.upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    moment = min(moment, now + MAX_SESSION_AGE).replace(microsecond=0)
    return moment if moment > now else None


def properties_json(expires_at: datetime | None) -> dict[str, str]:
    """Return the `sessionProperties` of a session."""
    if expires_at is None:
        return {}
    return {"expiry": f"{expires_at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"}


def _narrowed(wanted: ScopeObject, known: Known) -> ScopeObject:
    """Return what was asked for by name, and everything where that is nothing.

    Dapps that were written for MetaMask name nothing and expect everything.
    """
    named = _ordered(wanted, known)
    return ScopeObject(
        methods=named.methods or known.methods,
        notifications=named.notifications or known.notifications,
    )


def _ordered(scope: ScopeObject, known: Known) -> ScopeObject:
    """Return what of a scope object the wallet can do, in the wallet's order."""
    return ScopeObject(
        methods=tuple(m for m in known.all_methods if m in scope.methods),
        notifications=tuple(n for n in known.notifications if n in scope.notifications),
        accounts=unique(scope.accounts),
    )
