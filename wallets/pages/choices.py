"""The checkboxes of consent and session pages: networks, accounts, permissions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.http import QueryDict

from wallets.caip import WALLET, Address, parse_scope
from wallets.consents import Consent
from wallets.models import Account
from wallets.pages.words import (
    group_words,
    methods_of,
    pooling_scopes,
    scope_names,
)
from wallets.permissions import SIGNING_METHODS, Group, groups_of, only
from wallets.proposals import Choice, NothingChosen, Offer
from wallets.scopes import ScopeObject, Scopes, requested_addresses, union

POOLED = "Transactions on this network stay pending: no block includes them."


@dataclass(frozen=True, slots=True)
class Option:
    """A checkbox.

    value: the form's value.
    note: a remark beside the title, "" for none.
    meaning: an explanation below the title.
    methods: the methods of a network's checkbox, by permission.
    is_watched: whether it is a watch-only account, which can't sign.
    """

    value: str
    title: str
    note: str
    is_ticked: bool
    meaning: str = ""
    methods: tuple[Methods, ...] = ()
    is_watched: bool = False


@dataclass(frozen=True, slots=True)
class Methods:
    """The methods of a permission on one network.

    names: each with whether it needs an account with a key.
    """

    group: str
    short: str
    names: tuple[tuple[str, bool], ...]


@dataclass(frozen=True, slots=True)
class Options:
    """All checkboxes of a page."""

    networks: list[Option]
    accounts: list[Option]
    groups: list[Option]

    @property
    def can_sign(self) -> bool:
        """Whether any of the user's accounts has a key."""
        return not all(account.is_watched for account in self.accounts)


def read_choice(posted: QueryDict) -> Choice:
    """Return the ticked values of a form; services check that they are on offer.

    Raises: NothingChosen for an unknown permission.
    """
    try:
        groups = frozenset(map(Group, posted.getlist("group")))
    except ValueError as error:
        raise NothingChosen("This permission is not available.") from error
    accounts = (text.partition(":") for text in posted.getlist("account"))
    return Choice(
        scopes=frozenset(posted.getlist("scope")),
        groups=groups,
        addresses=frozenset(Address(head, tail) for head, _, tail in accounts),
    )


def first_choice(consent: Consent) -> Choice:
    """Return the choice that the consent page starts with: everything requested."""
    return Choice(
        scopes=frozenset(consent.asked),
        groups=groups_of(consent.asked.values()),
        addresses=frozenset(consent.ticked),
    )


def current_choice(granted: Scopes) -> Choice:
    """Return the form's choice that corresponds to a session's scopes."""
    return Choice(
        scopes=frozenset(granted),
        groups=groups_of(granted.values()),
        addresses=frozenset(requested_addresses(granted)),
    )


def consent_options(consent: Consent, choice: Choice) -> Options:
    """Return the checkboxes of a request: the requested and the granted scopes."""
    wishes = set(consent.proposal.addresses)
    networks = _networks(
        consent.asked,
        choice,
        {
            scope: "new" if scope in consent.new else "already allowed"
            for scope in consent.asked
        },
    )
    return Options(
        networks=networks,
        accounts=_accounts(consent.accounts, choice, wishes),
        groups=_groups(consent.asked.values(), choice),
    )


def session_options(
    granted: Scopes, offer: Offer, accounts: Sequence[Account], choice: Choice
) -> Options:
    """Return the checkboxes of a session: granted scopes, then others on offer.

    The methods of a granted scope include those that it gets with another permission.
    """
    can_have = {
        scope: ScopeObject(known.methods, known.notifications)
        for scope, known in offer.items()
    }
    others = {
        scope: known
        for scope, known in can_have.items()
        if scope not in granted and parse_scope(scope).namespace != WALLET
    }
    new_groups = frozenset(Group) - groups_of(granted.values())
    extended = {
        scope: union(have, only(can_have.get(scope, ScopeObject()), new_groups))
        for scope, have in granted.items()
    }
    networks = _networks(
        {**extended, **others}, choice, dict.fromkeys(others, "not allowed yet")
    )
    return Options(
        networks=networks,
        accounts=_accounts(accounts, choice, set()),
        groups=_groups([*granted.values(), *can_have.values()], choice),
    )


def _networks(scopes: Scopes, choice: Choice, notes: Mapping[str, str]) -> list[Option]:
    """Return the checkboxes of networks, each with the methods that it would get.

    notes: remarks by scope.
    """
    names, pooling = scope_names(), pooling_scopes()
    return [
        Option(
            value=name,
            title=names.get(name, name),
            note=notes.get(name, ""),
            is_ticked=name in choice.scopes,
            meaning=POOLED if _sends(scope) and name in pooling else "",
            methods=_methods(scope),
        )
        for name, scope in scopes.items()
    ]


def _sends(scope: ScopeObject) -> bool:
    return Group.SEND in groups_of([scope])


def _methods(scope: ScopeObject) -> tuple[Methods, ...]:
    """Return a scope's methods by permission."""
    found = []
    for group in Group:
        names = methods_of(group, [scope])
        if names:
            short = group_words(group, names).short
            keyed = tuple((name, name in SIGNING_METHODS) for name in names)
            found.append(Methods(group.value, short, keyed))
    return tuple(found)


def _accounts(
    accounts: Sequence[Account], choice: Choice, wishes: set[Address]
) -> list[Option]:
    notes = {True: "requested", False: ""}
    return [
        Option(
            value=f"{account.namespace}:{account.address}",
            title=account.label or "No label",
            note="primary"
            if account is accounts[0]
            else notes[account.named in wishes],
            is_ticked=account.named in choice.addresses,
            meaning=account.address,
            is_watched=not account.can_sign,
        )
        for account in accounts
    ]


def _groups(scopes: Iterable[ScopeObject], choice: Choice) -> list[Option]:
    """Return the checkboxes of permissions, described by the methods of all scopes."""
    together = [*scopes]
    there = groups_of(together)
    options = []
    for group in Group:
        if group in there:
            words = group_words(group, methods_of(group, together))
            is_ticked = group in choice.groups
            options.append(
                Option(group.value, words.title, "", is_ticked, words.meaning)
            )
    return options
