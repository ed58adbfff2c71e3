"""Scope objects: requested and granted methods, notifications and accounts (CAIP-217).

`merge` turns `requiredScopes` and `optionalScopes` of a request into one object for
each chain. Values of the wrong type are rejected. Values of the right type that are
malformed are left out, as CAIP-25 demands: errors do not disclose what a wallet can do.
Source: https://chainagnostic.org/CAIPs/caip-25, caip-217; MetaMask's
    chain-agnostic-permission for the order of the checks
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypedDict, TypeVar

from wallets import caip
from wallets.caip import Address

MAX_SCOPES = 64
"""Scopes of one request, counting each reference of a namespace."""

MAX_STRINGS = 256
"""Strings in one list of a scope object; there are fewer methods."""

MAX_STRING_LENGTH = 128
"""Characters of one string; longer account ids exist in theory only."""

_LONGEST_SCOPE = 41
"""Characters of the longest valid scope; longer keys are shown shortened."""

_MEMBERS = frozenset({"references", "methods", "notifications", "accounts"})
_IGNORED_MEMBERS = frozenset({"rpcDocuments", "rpcEndpoints"})
"""Members of a former version of CAIP-217, which are ignored."""

Hashable = TypeVar("Hashable", str, Address)


class ScopeJson(TypedDict):
    """A scope object of a session on the wire."""

    accounts: list[str]
    methods: list[str]
    notifications: list[str]


class StoredScope(TypedDict):
    """A scope object in the database.

    Scopes are stored as a list, because the members of a JSON object have no order.
    """

    scope: str
    accounts: list[str]
    methods: list[str]
    notifications: list[str]


@dataclass(frozen=True, slots=True)
class ScopeObject:
    """The methods, notifications and accounts requested or granted on one chain.

    accounts: CAIP-10 account ids; in a session the first one is the primary account.
    """

    methods: tuple[str, ...] = ()
    notifications: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()


Scopes = Mapping[str, ScopeObject]
"""Scope objects by their scopes, the oldest first."""


@dataclass(frozen=True, slots=True)
class RequestedScope:
    """A scope object of a request, with the right types.

    references: None without the member, which differs from an empty list.
    has_unknown_members: whether it has members that CAIP-217 does not define.
    """

    scope_object: ScopeObject
    references: tuple[str, ...] | None = None
    has_unknown_members: bool = False


class ShapeError(ValueError):
    """Raised when a value has the wrong type.

    path: the place within the parameter, such as `eip155:1.methods[2]`.
    """

    def __init__(self, path: str, message: str) -> None:
        super().__init__(message)
        self.path = path


def decode_scopes(value: Any) -> dict[str, RequestedScope]:
    """Decode a `requiredScopes` or `optionalScopes` object of a request.

    Raises: ShapeError if a value has the wrong type.
    """
    if not isinstance(value, dict):
        raise ShapeError("", "expected an object of scope objects")
    return {key: _decode_scope(key, member) for key, member in value.items()}


def merge(scopes_objects: Iterable[Mapping[str, RequestedScope]]) -> Scopes:
    """Return the scopes that a request asks for.

    A namespace with references becomes one scope for each. Two objects for the same
    scope become their union. Malformed scope objects are left out.
    Raises: ShapeError for more than MAX_SCOPES scopes.
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
    """Return the union of two scope objects, in the order of first occurrence."""
    return ScopeObject(
        methods=unique(one.methods + other.methods),
        notifications=unique(one.notifications + other.notifications),
        accounts=unique(one.accounts + other.accounts),
    )


def unique(values: Iterable[Hashable]) -> tuple[Hashable, ...]:
    """Return the values without repetitions, in the order of first occurrence."""
    return tuple(dict.fromkeys(values))


def requested_addresses(scopes: Scopes) -> tuple[Address, ...]:
    """Return the addresses of all accounts of scopes, without their chains.

    Invalid account ids are left out, because accounts in a request are only a wish.
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
    """Return whether any scope is a chain, and not the wallet's own scope."""
    return any(caip.parse_scope(name).namespace != caip.WALLET for name in scopes)


def merged_chains(scopes: Scopes) -> ScopeObject:
    """Return the union of the scope objects of a session's chains, without accounts."""
    allowed = ScopeObject()
    for name, scope in scopes.items():
        if has_chain({name: scope}):
            allowed = union(allowed, replace(scope, accounts=()))
    return allowed


def drop_unusable(scopes: Scopes) -> Scopes:
    """Return the scopes, or {} if no chain or no account is left."""
    has_account = any(scope.accounts for scope in scopes.values())
    return scopes if has_account and has_chain(scopes) else {}


def without(scopes: Scopes, removed: Iterable[str]) -> Scopes:
    """Return a session's scopes without the removed ones.

    removed: names of scopes. The result is {} if no chain or no account is left.
    """
    gone = scopes.keys() & set(removed)
    if not gone:
        return scopes
    return drop_unusable({n: scope for n, scope in scopes.items() if n not in gone})


def to_json(scopes: Scopes) -> dict[str, ScopeJson]:
    """Return scopes as `sessionScopes`."""
    return {
        name: {
            "accounts": list(scope.accounts),
            "methods": list(scope.methods),
            "notifications": list(scope.notifications),
        }
        for name, scope in scopes.items()
    }


def to_stored(scopes: Scopes) -> list[StoredScope]:
    """Return scopes in the form of the database."""
    return [{"scope": name, **value} for name, value in to_json(scopes).items()]


def from_stored(stored: Iterable[StoredScope]) -> Scopes:
    """Return the scopes that `to_stored` has made."""
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
    """Return whether any wallet could serve a scope object."""
    try:
        scope = caip.parse_scope(key)
    except ValueError:
        return False
    references = requested.references
    if scope.reference is not None:
        has_right_references = references is None
    else:
        # An empty list stands for no chain, not for all (CAIP-217). `wallet` is no
        # chain.
        has_right_references = bool(references) or scope.namespace == caip.WALLET
    named = requested.scope_object
    return (
        has_right_references
        and all(map(caip.is_reference, references or ()))
        and all(text.strip() for text in named.methods + named.notifications)
        and not requested.has_unknown_members
    )


def _flatten(key: str, requested: RequestedScope) -> list[str]:
    """Return the scopes of a key. Empty if the object is malformed."""
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
    """Return the names of the scopes that differ, under added, removed and changed."""
    changed = [name for name in new if name in old and new[name] != old[name]]
    found = {
        "added": [name for name in new if name not in old],
        "removed": [name for name in old if name not in new],
        "changed": changed,
    }
    return {word: names for word, names in found.items() if names}
