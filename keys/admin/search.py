"""Search in the admin, with queries that use an index.

Django's own search joins all searched tables before it compares a value.
"""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest

from keys.models import ApiKey, KeyVersion, User

MAX_NAMED = 1_000
"""Maximum number of keys of one owner that a search returns, the newest first."""

_LARGEST_ID = 2**63 - 1


def api_keys_like(term: str) -> QuerySet[ApiKey, Any]:
    """Return the ids of keys by hint, part of their name, or prefix of their owner."""
    owners = User.objects.filter(email__startswith=User.objects.normalize_email(term))
    hinted = KeyVersion.objects.filter(hint=term.replace("...", "…"))
    named = ApiKey.objects.filter(name__icontains=term)
    return (
        ApiKey.objects.filter(owner__in=owners)
        .order_by()
        .values("pk")
        .union(
            hinted.order_by().values("api_key"),
            named.order_by().values("pk"),
            all=True,
        )
    )


def api_keys_named(term: str) -> list[int]:
    """Return the id of a key by its number, or the ids of an owner's keys by email."""
    if term.isdecimal():
        number = int(term[:20])  # int() refuses thousands of digits
        return [number] if number <= _LARGEST_ID else []
    email = User.objects.normalize_email(term)
    owned = ApiKey.objects.filter(owner__email=email).values_list("pk", flat=True)
    return list(owned[:MAX_NAMED])


class SearchByKey:
    """Mixin for admins of objects that belong to a key: search by number or owner."""

    search_fields: Any = ["api_key"]
    search_help_text: Any = "Id of a key, or full email address of its owner."

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Return the objects of the keys that the term names, without duplicates."""
        if term := search_term.strip():
            queryset = queryset.filter(api_key__in=api_keys_named(term))
        return queryset, False
