"""The checkboxes of consent and session pages: networks, accounts, permissions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.http import QueryDict

from wallets.caip import WALLET, Address, parse_scope
from wallets.consents import Consent
from wallets.models import Account
from wallets.pages.words import GROUPS, scope_names
from wallets.permissions import Group, group_of, groups_of
from wallets.proposals import Choice, NothingChosen, Offer
from wallets.scopes import ScopeObject, Scopes, requested_addresses, union


@dataclass(frozen=True, slots=True)
class Option:
    """A checkbox.

    value: the form's value.
    note: a remark beside the title, "" for none.
    meaning: an explanation below the title.
    methods: names of the methods that it allows.
    is_watched: whether it is a watch-only account, which can't sign.
    """

    value: str
    title: str
    note: str
    is_ticked: bool
    meaning: str = ""
    methods: tuple[str, ...] = ()
    is_watched: bool = False


@dataclass(frozen=True, slots=True)
class Options:
    """All checkboxes of a page."""

    networks: list[Option]
    accounts: list[Option]
    groups: list[Option]


def read_choice(posted: QueryDict) -> Choice:
    """Return the ticked values of a form; services check that they are on offer.

    Raises: NothingChosen for an unknown permission.
    """
    try:
        groups = frozenset(map(Group, posted.getlist("group")))
    except ValueError as error:
        raise NothingChosen("A permission was chosen that is not on offer.") from error
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
    names = scope_names()
    wishes = set(consent.proposal.addresses)
    networks = [
        Option(
            value=scope,
            title=names.get(scope, scope),
            note="new" if scope in consent.new else "already allowed",
            is_ticked=scope in choice.scopes,
        )
        for scope in consent.asked
    ]
    return Options(
        networks=networks,
        accounts=_accounts(consent.accounts, choice, wishes),
        groups=_groups(consent.asked.values(), choice),
    )


def session_options(
    granted: Scopes, offer: Offer, accounts: Sequence[Account], choice: Choice
) -> Options:
    """Return the checkboxes of a session: granted scopes, then others on offer."""
    names = scope_names()
    others = [
        scope
        for scope in offer
        if scope not in granted and parse_scope(scope).namespace != WALLET
    ]
    networks = [
        Option(
            value=scope,
            title=names.get(scope, scope),
            note="" if scope in granted else "not allowed so far",
            is_ticked=scope in choice.scopes,
        )
        for scope in [*granted, *others]
    ]
    can_have = [
        ScopeObject(known.methods, known.notifications) for known in offer.values()
    ]
    return Options(
        networks=networks,
        accounts=_accounts(accounts, choice, set()),
        groups=_groups([*granted.values(), *can_have], choice),
    )


def _accounts(
    accounts: Sequence[Account], choice: Choice, wishes: set[Address]
) -> list[Option]:
    notes = {True: "wished for", False: ""}
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
    together = ScopeObject()
    for scope in scopes:
        together = union(together, scope)
    there = groups_of([together])
    return [
        Option(
            value=group.value,
            title=words.title,
            note="",
            is_ticked=group in choice.groups,
            meaning=words.meaning,
            methods=tuple(name for name in together.methods if group_of(name) == group),
        )
        for group, words in GROUPS.items()
        if group in there
    ]
