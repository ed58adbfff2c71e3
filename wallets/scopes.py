"""Scope objects: what a dapp may ask for, and what it may do (CAIP-217).

From the `requiredScopes` and `optionalScopes` of a request to one object for each chain.
What has the wrong type is refused; what has the right type and makes no sense is left
out, as CAIP-25 has it: a dapp doesn't learn from errors what a wallet can.
Source: https://chainagnostic.org/CAIPs/caip-25, caip-217; MetaMask's
chain-agnostic-permission for the order in which things are looked at
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypedDict, TypeVar

from wallets import caip
from wallets.caip import Address

MAX_SCOPES = 64
"""Scopes of one request, after namespaces with references were taken apart."""

MAX_STRINGS = 256
"""Strings in one list of a scope object; more than there are methods anywhere."""

MAX_STRING_LENGTH = 128
"""Characters of one string; longer account ids exist in theory only."""

_LONGEST_SCOPE = 41
"""Characters of a scope at most: what is longer is shown shortened."""

_MEMBERS = frozenset({"references", "methods", "notifications", "accounts"})
_IGNORED_MEMBERS = frozenset({"rpcDocuments", "rpcEndpoints"})
"""Members that CAIP-217 once had: no reason to leave a scope out."""

Hashable = TypeVar("Hashable", str, Address)


class ScopeJson(TypedDict):
    """A scope object of a session on the wire."""

    accounts: list[str]
    methods: list[str]
    notifications: list[str]


class StoredScope(TypedDict):
    """A scope object in the database, where an object's members have no order."""

    scope: str
    accounts: list[str]
    methods: list[str]
    notifications: list[str]


@dataclass(frozen=True, slots=True)
class ScopeObject:
    """What is asked for, or granted, on one chain.

    accounts: CAIP-10 account ids; in a session the first is the one to begin with.
    """

    methods: tuple[str, ...] = ()
    notifications: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()


Scopes = Mapping[str, ScopeObject]
"""Scope objects by their scopes, the oldest first."""


@dataclass(frozen=True, slots=True)
class RequestedScope:
    """A scope object as a dapp has sent it, in the right types.

    references: None when the member is not there, which differs from an empty list.
    has_unknown_members: whether it has members that no scope object has.
    """

    scope_object: ScopeObject
    references: tuple[str, ...] | None = None
    has_unknown_members: bool = False


class ShapeError(ValueError):
    """Raised when a value has not the type that its place demands.

    path: the place within the parameter, such as `eip155:1.methods[2]`.
    """

    def __init__(self, path: str, message: str) -> None:
        super().__init__(message)
        self.path = path


def decode_scopes(value: Any) -> dict[str, RequestedScope]:
    """Read a `requiredScopes` or `optionalScopes` object.

    Raises: ShapeError.
    """
    if not isinstance(value, dict):
        raise ShapeError("", "expected an object of scope objects")
    return {key: _decode_scope(key, member) for key, member in value.items()}


def merge(scopes_objects: Iterable[Mapping[str, RequestedScope]]) -> Scopes:
    """Return what the scopes objects of a request ask for together.

    Namespaces with references become one scope for each; the same scope twice becomes
    the union of both. What makes no sense is left out whole.
    Raises: ShapeError when it is too much.
    """
    merged: dict[str, ScopeObject] = {}
    for requested in scopes_objects:
        for key, scope in requested.items():
            for name in _flatten(key, scope):
                known = merged.get(name, ScopeObject())
                merged[name] = union(known, scope.scope_object)
                if len(merged) > MAX_SCOPES:
                    raise ShapeError("", f"more than {MAX_SCOPES} scopes")
    return merged


def union(one: ScopeObject, other: ScopeObject) -> ScopeObject:
    """Return what either allows, in the order of first sight, each thing once."""
    return ScopeObject(
        methods=unique(one.methods + other.methods),
        notifications=unique(one.notifications + other.notifications),
        accounts=unique(one.accounts + other.accounts),
    )


def unique(values: Iterable[Hashable]) -> tuple[Hashable, ...]:
    """Return each value once, in the order of first sight."""
    return tuple(dict.fromkeys(values))


def requested_addresses(scopes: Scopes) -> tuple[Address, ...]:
    """Return the addresses that scope objects name, whatever chain they name them on.

    What is no account is left out: accounts are but the dapp's wish.
    """
    return unique(
        _addresses(account for s in scopes.values() for account in s.accounts)
    )


def with_addresses(scopes: Scopes, addresses: Sequence[Address]) -> Scopes:
    """Return the scopes with the same addresses in each scope of their namespace."""
    return {
        name: replace(scope, accounts=_accounts(name, addresses))
        for name, scope in scopes.items()
    }


def has_chain(scopes: Scopes) -> bool:
    """Return whether any of the scopes is a chain's, not the wallet's own."""
    return any(caip.parse_scope(name).namespace != caip.WALLET for name in scopes)


def on_all_chains(scopes: Scopes) -> ScopeObject:
    """Return what any of a session's chains allows, without accounts."""
    allowed = ScopeObject()
    for name, scope in scopes.items():
        if has_chain({name: scope}):
            allowed = union(allowed, replace(scope, accounts=()))
    return allowed


def worth_keeping(scopes: Scopes) -> Scopes:
    """Return what is left of a session: nothing without a chain or without accounts."""
    has_account = any(scope.accounts for scope in scopes.values())
    return scopes if has_account and has_chain(scopes) else {}


def without(scopes: Scopes, removed: Iterable[str]) -> Scopes:
    """Return what is left of a session when scopes are taken away."""
    gone = scopes.keys() & set(removed)
    if not gone:
        return scopes
    return worth_keeping({n: scope for n, scope in scopes.items() if n not in gone})


def to_json(scopes: Scopes) -> dict[str, ScopeJson]:
    """Return the `sessionScopes` that stand for scopes on the wire."""
    return {
        name: {
            "accounts": list(scope.accounts),
            "methods": list(scope.methods),
            "notifications": list(scope.notifications),
        }
        for name, scope in scopes.items()
    }


def to_stored(scopes: Scopes) -> list[StoredScope]:
    """Return the scopes as they are kept."""
    return [{"scope": name, **value} for name, value in to_json(scopes).items()]


def from_stored(stored: Iterable[StoredScope]) -> Scopes:
    """Return the scopes that were kept."""
    return {
        entry["scope"]: ScopeObject(
            methods=tuple(entry["methods"]),
            notifications=tuple(entry["notifications"]),
            accounts=tuple(entry["accounts"]),
        )
        for entry in stored
    }


def _decode_scope(key: str, value: Any) -> RequestedScope:
    path = key if len(key) <= _LONGEST_SCOPE else f"{key[:_LONGEST_SCOPE]}…"
    if not isinstance(value, dict):
        raise ShapeError(path, "expected a scope object")
    for name in ("methods", "notifications"):
        if name not in value:
            raise ShapeError(f"{path}.{name}", "required")
    lists = {
        name: _decode_strings(f"{path}.{name}", value[name])
        for name in _MEMBERS & value.keys()
    }
    return RequestedScope(
        ScopeObject(
            methods=lists["methods"],
            notifications=lists["notifications"],
            accounts=lists.get("accounts", ()),
        ),
        references=lists.get("references"),
        has_unknown_members=bool(value.keys() - _MEMBERS - _IGNORED_MEMBERS),
    )


def _decode_strings(path: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ShapeError(path, "expected an array of strings")
    if len(value) > MAX_STRINGS:
        raise ShapeError(path, f"more than {MAX_STRINGS} strings")
    for index, text in enumerate(value):
        if not isinstance(text, str):
            raise ShapeError(f"{path}[{index}]", "expected a string")
        if len(text) > MAX_STRING_LENGTH:
            raise ShapeError(
                f"{path}[{index}]", f"longer than {MAX_STRING_LENGTH} characters"
            )
    return tuple(value)


def _makes_sense(key: str, requested: RequestedScope) -> bool:
    """Return whether a scope object could be one of any wallet's."""
    try:
        scope = caip.parse_scope(key)
    except ValueError:
        return False
    references = requested.references
    if scope.reference is not None:
        has_right_references = references is None
    else:
        # No references: no chain, not all of them (CAIP-217). The wallet is no chain.
        has_right_references = bool(references) or scope.namespace == caip.WALLET
    named = requested.scope_object
    return (
        has_right_references
        and all(map(caip.is_reference, references or ()))
        and all(text.strip() for text in named.methods + named.notifications)
        and not requested.has_unknown_members
    )


def _flatten(key: str, requested: RequestedScope) -> list[str]:
    """Return the scopes that a key stands for, none when it makes no sense."""
    if not _makes_sense(key, requested):
        return []
    if requested.references is None:
        return [key]
    return [f"{key}:{reference}" for reference in requested.references]


def _addresses(accounts: Iterable[str]) -> Iterator[Address]:
    for account in accounts:
        try:
            yield caip.address_of(caip.parse_account_id(account))
        except ValueError:
            continue


def _accounts(scope: str, addresses: Sequence[Address]) -> tuple[str, ...]:
    namespace = caip.account_namespace(caip.parse_scope(scope))
    return tuple(f"{scope}:{a.address}" for a in addresses if a.namespace == namespace)


def difference(old: Scopes, new: Scopes) -> dict[str, list[str]]:
    """Return the names of the scopes that differ, by what happened to them."""
    changed = [name for name in new if name in old and new[name] != old[name]]
    found = {
        "added": [name for name in new if name not in old],
        "removed": [name for name in old if name not in new],
        "changed": changed,
    }
    return {word: names for word, names in found.items() if names}
