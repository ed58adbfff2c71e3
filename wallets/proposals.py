"""Computes what a dapp is granted: its request, the wallet's offer, the user's choice.

As in MetaMask, a request is a wish: scopes that the wallet does not serve are left out,
methods that were not requested are not offered, and the session has what the user
leaves ticked.
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
"""The latest expiry that a dapp may request."""

_TIMESTAMP = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?"
    r"([Zz]|[+-][0-9]{2}:[0-9]{2})"
)
"""RFC 3339; `datetime.fromisoformat` accepts more."""


@dataclass(frozen=True, slots=True)
class Known:
    """The methods and events that the wallet can grant in one scope, in their order.

    on_request: methods that are granted only if the request names them.
    """

    methods: tuple[str, ...] = ()
    notifications: tuple[str, ...] = ()
    on_request: tuple[str, ...] = ()

    @property
    def all_methods(self) -> tuple[str, ...]:
        """Every method that may be granted."""
        return self.methods + self.on_request


Offer = Mapping[str, Known]
"""Scope → what the user's wallet can grant."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """The part of a request that can be granted.

    scopes: without accounts, because accounts are chosen once for all chains of a
        namespace.
    addresses: addresses that the dapp would like to be preselected; they may belong to
        others.
    unsupported: requested scopes that the wallet does not serve.
    expires_at: the session's end as requested, None for never.
    """

    scopes: Scopes
    addresses: tuple[Address, ...] = ()
    unsupported: tuple[str, ...] = ()
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """The user's choice on the consent page.

    scopes: names of the ticked scopes. An unknown name is an error.
    """

    scopes: frozenset[str]
    groups: frozenset[Group] = field(default_factory=lambda: frozenset(Group))
    addresses: frozenset[Address] = frozenset()


class NothingChosen(ValueError):
    """Raised when the user's choice grants nothing, or names something not on offer."""


def propose(
    wanted: Scopes, offer: Offer, expires_at: datetime | None = None
) -> Proposal:
    """Return the part of a request that can be granted.

    Raises: ScopesNotSupported when no requested scope is served.
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


def asked_scopes(existing: Scopes, proposal: Proposal, offer: Offer) -> Scopes:
    """Return the scopes that the consent page asks about, without accounts.

    The session's scopes come first, as far as the wallet still serves them.
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
    """Return the addresses that are ticked when the page is opened.

    wishes: addresses that the dapp would like to see.
    own: the user's addresses, the primary one of each namespace first. The first
        address of a namespace is ticked if no other of that namespace is.
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
    """Return the session's scopes: those of `scopes` that the user has ticked.

    own: the user's addresses, in the order in which dapps see them.
    Raises: NothingChosen.
    """
    if not choice.scopes <= scopes.keys():
        raise NothingChosen("This network is not available.")
    if not choice.addresses <= set(own):
        raise NothingChosen("This account is not one of yours.")
    chosen = {
        name: only(scope, choice.groups)
        for name, scope in scopes.items()
        if name in choice.scopes
    }
    addresses = [address for address in own if address in choice.addresses]
    granted = scope_objects.with_addresses(chosen, addresses)
    needs_chain = scope_objects.has_chain(scopes)
    if not granted or (needs_chain and not scope_objects.has_chain(granted)):
        raise NothingChosen("Select at least one network.")
    if not addresses and scope_objects.has_chain(granted):
        raise NothingChosen("Select at least one account.")
    return granted


def edited(
    existing: Scopes, offer: Offer, choice: Choice, own: Sequence[Address]
) -> Scopes:
    """Return a session's scopes after an edit by the user; {} ends the session.

    A group that is newly allowed adds all its methods. In groups that were allowed
    before, methods that were not granted stay so. A scope that is not on offer at present,
    such as a hidden network, keeps its methods.
    Raises: NothingChosen for a choice that is not on offer.
    """
    if not choice.scopes <= existing.keys() | offer.keys():
        raise NothingChosen("This network is not available.")
    if not choice.addresses <= set(own):
        raise NothingChosen("This account is not one of yours.")
    new_groups = choice.groups - groups_of(existing.values())
    chosen: dict[str, ScopeObject] = {}
    for name in [*existing, *(name for name in offer if name not in existing)]:
        if name in choice.scopes:
            wanted = _extended(existing.get(name), offer.get(name), new_groups)
            chosen[name] = only(wanted, choice.groups)
    addresses = [address for address in own if address in choice.addresses]
    return scope_objects.drop_unusable(scope_objects.with_addresses(chosen, addresses))


def _extended(
    old: ScopeObject | None, known: Known | None, new_groups: frozenset[Group]
) -> ScopeObject:
    """Return a scope after an edit, with everything that newly allowed groups add.

    old: the granted scope, or None. known: what the wallet can grant, or None.
    """
    if known is None:
        return old or ScopeObject()
    full = ScopeObject(known.methods, known.notifications)
    wanted = full if old is None else scope_objects.union(old, only(full, new_groups))
    return _ordered(wanted, known)


def to_stored(proposal: Proposal) -> dict[str, Any]:
    """Return a proposal as JSON for the database."""
    expires_at = proposal.expires_at
    return {
        "scopes": scope_objects.to_stored(proposal.scopes),
        "addresses": [list(address) for address in proposal.addresses],
        "unsupported": list(proposal.unsupported),
        "expires_at": None if expires_at is None else expires_at.isoformat(),
    }


def from_stored(stored: Mapping[str, Any]) -> Proposal:
    """Return the proposal that `to_stored` has made."""
    moment = stored["expires_at"]
    return Proposal(
        scopes=scope_objects.from_stored(stored["scopes"]),
        addresses=tuple(Address(*address) for address in stored["addresses"]),
        unsupported=tuple(stored["unsupported"]),
        expires_at=None if moment is None else datetime.fromisoformat(moment),
    )


def decode_properties(value: Any) -> dict[str, Any]:
    """Decode the `sessionProperties` of a request.

    Raises: ShapeError if the value is not an object.
    """
    if not isinstance(value, dict):
        raise scope_objects.ShapeError("", "expected an object")
    return value


def wanted_expiry(properties: Mapping[str, Any], now: datetime) -> datetime | None:
    """Return the expiry that a dapp requests, None if it requests none.

    `expiry` is the only known property. Values that are no time in the future are
    ignored, as are unknown properties. The result has whole seconds and is at most
    MAX_SESSION_AGE ahead.
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
    """Return the requested methods and notifications; all known ones if none is named.

    Dapps written for MetaMask name none and expect all.
    """
    named = _ordered(wanted, known)
    return ScopeObject(
        methods=named.methods or known.methods,
        notifications=named.notifications or known.notifications,
    )


def _ordered(scope: ScopeObject, known: Known) -> ScopeObject:
    """Return the grantable part of a scope object, in the wallet's order."""
    return ScopeObject(
        methods=tuple(m for m in known.all_methods if m in scope.methods),
        notifications=tuple(n for n in known.notifications if n in scope.notifications),
        accounts=unique(scope.accounts),
    )
