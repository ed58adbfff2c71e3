"""What staff type into the search of the wallet's lists, looked up where an index answers it.

Django's own search compares upper case with upper case in all tables at once, for which
all rows are read. Who and what is meant is found first here, then what belongs to it.
"""

from __future__ import annotations

from typing import Any

from django.db.models import Max, Q, QuerySet
from django.http import HttpRequest

from keys.models import User
from wallets.models import Account, Activity, Dapp

LATEST = 100_000
"""Lines of the log that are looked through when no user is named: it has millions."""


def dapps_named(term: str) -> QuerySet[Dapp, Any]:
    """Return the ids of a user's dapps, of those with an identity, and with a label."""
    dapps = Dapp.objects.order_by().values("pk")
    of_user = dapps.filter(user__in=_users_named(term))
    known = dapps.filter(ident__in=[term, term.lower()])
    labelled = dapps.filter(label__iexact=term).exclude(label="")  # as its index
    return of_user.union(known, labelled, all=True)


def accounts_named(term: str) -> QuerySet[Account, Any]:
    """Return the ids of a user's accounts, and of those with an address."""
    accounts = Account.objects.order_by().values("pk")
    of_user = accounts.filter(user__in=_users_named(term))
    return of_user.union(accounts.filter(address__in=[term, term.lower()]), all=True)


def activities_named(term: str) -> Q:
    """Return the condition of a user's lines, else of those of a dapp or from an address."""
    if users := _users_named(term):
        return Q(user__in=users)
    newest = Activity.objects.aggregate(pk=Max("pk"))["pk"] or 0
    said = Q(dapp_name__iexact=term) | Q(remote_address__iexact=term)
    return Q(pk__gt=newest - LATEST) & said


def pairings_named(term: str) -> Q:
    """Return the condition of a user's codes, and of those for an identity."""
    return Q(user__in=_users_named(term)) | Q(ident__in=[term, term.lower()])


def _users_named(term: str) -> list[int]:
    email = User.objects.normalize_email(term)
    return list(User.objects.filter(email=email).values_list("pk", flat=True))


class Search:
    """An admin whose search is a condition; nothing comes twice."""

    def found(self, term: str) -> Q:
        """Return the condition of what is meant."""
        raise NotImplementedError

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Return what is meant, all without a term."""
        if term := search_term.strip():
            queryset = queryset.filter(self.found(term))
        return queryset, False


class SearchByDapp(Search):
    """An admin of what belongs to dapps."""

    search_fields: Any = ["dapp"]
    search_help_text: Any = "Whole address of a user, origin or name of a dapp."

    def found(self, term: str) -> Q:
        """Return the condition of what belongs to the dapps that are meant."""
        return Q(dapp__in=dapps_named(term))
