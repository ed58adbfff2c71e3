"""Plans, limits of single keys, and usage in the admin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import admin
from django.db.models import Max, Model, QuerySet
from django.forms import ModelForm
from django.http import HttpRequest

from keys.admin_search import SearchByKey
from keys.long_lists import LongList
from keys.models import KeyLimits, Plan, UsageBucket, User
from keys.read_only_admin import ReadOnly
from keys.services.events import Actor
from keys.services.limits import set_limits

if TYPE_CHECKING:  # the classes are generic for the type checker alone
    _PlanAdmin = admin.ModelAdmin[Plan]
    _KeyLimitsAdmin = admin.ModelAdmin[KeyLimits]
    _UsageAdmin = admin.ModelAdmin[UsageBucket]
else:
    _PlanAdmin = _KeyLimitsAdmin = _UsageAdmin = admin.ModelAdmin

LATEST = 100_000
"""Rows of usage that are looked through when no key is named: a filter that few rows pass
would have to read millions."""


@admin.register(Plan)
class PlanAdmin(_PlanAdmin):
    """Plans. A change of one reaches the keys that have it within 15 seconds."""

    list_display = [
        "name",
        "credits_per_second",
        "burst",
        "credits_per_day",
        "is_default",
    ]
    prepopulated_fields = {"slug": ["name"]}


@admin.register(KeyLimits)
class KeyLimitsAdmin(SearchByKey, LongList, _KeyLimitsAdmin):
    """What differs from the default plan; a change acts at once."""

    list_display = [
        "api_key",
        "plan",
        "credits_per_second",
        "burst",
        "credits_per_day",
    ]
    list_filter = ["plan"]
    list_select_related = ["api_key", "plan"]
    autocomplete_fields = ["api_key"]

    def get_readonly_fields(
        self, request: HttpRequest, obj: KeyLimits | None = None
    ) -> list[str]:
        return [] if obj is None else ["api_key"]

    def has_delete_permission(
        self, request: HttpRequest, obj: Model | None = None
    ) -> bool:
        return False  # empty them instead: that is put on record

    def save_model(
        self,
        request: HttpRequest,
        obj: KeyLimits,
        form: ModelForm[KeyLimits],
        change: bool,
    ) -> None:
        assert isinstance(request.user, User)
        set_limits(
            api_key=obj.api_key,
            plan=obj.plan,
            credits_per_second=obj.credits_per_second,
            burst=obj.burst,
            credits_per_day=obj.credits_per_day,
            actor=Actor(request.user, request.META.get("REMOTE_ADDR") or None),
        )


@admin.register(UsageBucket)
class UsageBucketAdmin(SearchByKey, ReadOnly, _UsageAdmin):
    """Usage, to be looked at."""

    list_display = [
        "start",
        "span",
        "api_key",
        "network",
        "method",
        "outcome",
        "calls",
        "credits",
    ]
    list_filter = ["span", "outcome", "network"]
    list_select_related = ["api_key", "network"]
    ordering = ["-id"]

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[UsageBucket], search_term: str
    ) -> tuple[QuerySet[UsageBucket], bool]:
        """Return the usage of the keys that were named, else the latest of all keys."""
        if not search_term.strip():
            newest = UsageBucket.objects.aggregate(pk=Max("pk"))["pk"] or 0
            queryset = queryset.filter(pk__gt=newest - LATEST)
        return super().get_search_results(request, queryset, search_term)
