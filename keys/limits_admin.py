"""Plans, limits of single keys, and usage in the admin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import admin
from django.core.paginator import Paginator
from django.db.models import Model, QuerySet
from django.forms import ModelForm
from django.http import HttpRequest
from django.utils.functional import cached_property

from keys.models import KeyLimits, Plan, UsageBucket, User
from keys.services.events import Actor
from keys.services.limits import set_limits

if TYPE_CHECKING:  # the classes are generic for the type checker alone
    _PlanAdmin = admin.ModelAdmin[Plan]
    _KeyLimitsAdmin = admin.ModelAdmin[KeyLimits]
    _UsageAdmin = admin.ModelAdmin[UsageBucket]
    _Paginator = Paginator[UsageBucket]
else:
    _PlanAdmin = _KeyLimitsAdmin = _UsageAdmin = admin.ModelAdmin
    _Paginator = Paginator

MAX_COUNTED = 10_000
"""Rows: to count millions would take longer than any page may."""


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
class KeyLimitsAdmin(_KeyLimitsAdmin):
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
    search_fields = ["api_key__owner__email", "api_key__name"]
    show_full_result_count = False
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


class _BoundedPaginator(_Paginator):
    """Pages through the first rows of a table that may have millions."""

    @cached_property
    def count(self) -> int:
        rows = self.object_list
        assert isinstance(rows, QuerySet)
        return rows.order_by()[:MAX_COUNTED].count()


@admin.register(UsageBucket)
class UsageBucketAdmin(_UsageAdmin):
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
    search_fields = ["=api_key__id"]
    ordering = ["-id"]
    paginator = _BoundedPaginator
    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(
        self, request: HttpRequest, obj: Model | None = None
    ) -> bool:
        return False

    def has_delete_permission(
        self, request: HttpRequest, obj: Model | None = None
    ) -> bool:
        return False
