"""What staff type into the search of the admin, looked up where an index answers it.

Django's own search joins all tables that it looks into before it compares anything.
"""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest

from keys.models import ApiKey, KeyVersion, User

MAX_NAMED = 1_000
"""Keys of one owner that are looked into, the newest."""

_LARGEST_ID = 2**63 - 1


def api_keys_like(term: str) -> QuerySet[ApiKey, Any]:
    """Return the ids of keys by a hint, what their name has in it, or an owner's start."""
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
    """Return the ids of the key with a number, or of those of an owner by his address."""
    if term.isdecimal():
        number = int(term)
        return [number] if number <= _LARGEST_ID else []
    email = User.objects.normalize_email(term)
    owned = ApiKey.objects.filter(owner__email=email).values_list("pk", flat=True)
    return list(owned[:MAX_NAMED])


class SearchByKey:
    """An admin of what belongs to keys, which are found by number or owner."""

    search_fields: Any = ["api_key"]
    search_help_text: Any = "Number of a key, or the whole address of its owner."

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Return what belongs to the keys that were named; nothing comes twice."""
        if term := search_term.strip():
            queryset = queryset.filter(api_key__in=api_keys_named(term))
        return queryset, False
