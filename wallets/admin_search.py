"""Search in the admin's lists of the wallet, by indexed columns only.

Django's own search compares upper-cased columns of all tables in one query, which reads
all rows. Here the user or dapp is looked up first, then the rows that belong to it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db.models import Max, Q, QuerySet
from django.http import HttpRequest

from keys.models import User
from wallets.models import Account, Activity, Dapp

LATEST = 100_000
"""Newest lines of the log that are searched if the term is no user's email address."""


def dapps_named(term: str) -> QuerySet[Dapp, Any]:
    """Return the ids of dapps whose user's email, identity or label is the term."""
    dapps = Dapp.objects.order_by().values("pk")
    of_user = dapps.filter(user__in=_users_named(term))
    known = dapps.filter(ident__in=[term, term.lower()])
    # The index excludes empty labels, and so has to the query.
    labelled = dapps.filter(label__iexact=term).exclude(label="")
    return of_user.union(known, labelled, all=True)


def accounts_named(term: str) -> Q:
    """Return the condition for accounts whose user's email or address is the term."""
    accounts = Account.objects.order_by().values("pk")
    of_user = accounts.filter(user__in=_users_named(term))
    with_address = accounts.filter(address__in=[term, term.lower()])
    return Q(pk__in=of_user.union(with_address, all=True))


def activities_named(term: str) -> Q:
    """Return the condition for log lines of a user, else of a dapp or IP address."""
    if users := _users_named(term):
        return Q(user__in=users)
    newest = Activity.objects.aggregate(pk=Max("pk"))["pk"] or 0
    said = Q(dapp_name__iexact=term) | Q(remote_address__iexact=term)
    return Q(pk__gt=newest - LATEST) & said


def pairings_named(term: str) -> Q:
    """Return the condition for pairings of a user or an identity."""
    return Q(user__in=_users_named(term)) | Q(ident__in=[term, term.lower()])


def _users_named(term: str) -> list[int]:
    email = User.objects.normalize_email(term)
    return list(User.objects.filter(email=email).values_list("pk", flat=True))


def rows_of_dapps_named(term: str) -> Q:
    """Return the condition for rows that belong to dapps selected by `dapps_named`."""
    return Q(dapp__in=dapps_named(term))


class Search:
    """Base of admins whose search adds one condition and no joins, which repeat rows."""

    condition: Callable[[str], Q]
    """Returns the condition for the rows that a search term selects."""

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Return the rows that the search term selects, all rows for an empty one."""
        if term := search_term.strip():
            queryset = queryset.filter(self.condition(term))
        return queryset, False


class SearchByDapp(Search):
    """An admin of rows that belong to dapps."""

    search_fields: Any = ["dapp"]
    search_help_text: Any = "Full email address of a user, or origin or name of a dapp."
    condition = staticmethod(rows_of_dapps_named)
