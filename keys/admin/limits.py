"""Plans, limits of single keys, and usage in the admin."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin
from django.contrib.admin.views.main import SEARCH_VAR, ChangeList
from django.db.models import Model, QuerySet
from django.forms import ModelForm
from django.http import HttpRequest

from keys.admin.lists import LongList, ReadOnly
from keys.admin.search import SearchByKey
from keys.audit_sentences import key_label
from keys.models import KeyLimits, Plan, Span, UsageBucket, User
from keys.services.events import Actor, announce_plan
from keys.services.limits import set_limits
from keys.usage.ranges import DEFAULT, RANGES

if TYPE_CHECKING:  # the classes are generic for the type checker alone
    _PlanAdmin = admin.ModelAdmin[Plan]
    _KeyLimitsAdmin = admin.ModelAdmin[KeyLimits]
    _UsageAdmin = admin.ModelAdmin[UsageBucket]
else:
    _PlanAdmin = _KeyLimitsAdmin = _UsageAdmin = admin.ModelAdmin

LATEST = 10_000
"""Rows of a span that are searched if no key is given. A filter that few rows pass
would otherwise read millions of rows."""


@admin.register(Plan)
class PlanAdmin(_PlanAdmin):
    """Plans. A change applies to the plan's keys at once."""

    list_display = [
        "name",
        "credits_per_second",
        "burst",
        "credits_per_day",
        "is_default",
    ]
    fields = [
        *("name", "slug"),
        *("credits_per_second", "burst", "credits_per_day"),
        "is_default",
    ]
    prepopulated_fields = {"slug": ["name"]}

    def save_model(
        self, request: HttpRequest, obj: Plan, form: ModelForm[Plan], change: bool
    ) -> None:
        super().save_model(request, obj, form, change)
        announce_plan(obj)

    def delete_model(self, request: HttpRequest, obj: Plan) -> None:
        announce_plan(obj)
        super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Plan]) -> None:
        for plan in queryset:
            announce_plan(plan)
        super().delete_queryset(request, queryset)


class KeyChoiceField(forms.ModelChoiceField):  # type: ignore[type-arg]
    """A selection of keys that shows name, hint and owner."""

    def label_from_instance(self, obj: Any) -> str:
        """Return the label of a selected key."""
        return key_label(obj)


@admin.register(KeyLimits)
class KeyLimitsAdmin(SearchByKey, LongList, _KeyLimitsAdmin):
    """Own terms of single keys in the admin. Changes apply at once."""

    list_display = [
        "key",
        "plan",
        "credits_per_second",
        "burst",
        "credits_per_day",
    ]
    list_filter = ["plan"]
    list_select_related = ["api_key__owner", "plan"]
    autocomplete_fields = ["api_key"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[KeyLimits]:
        found: QuerySet[KeyLimits] = super().get_queryset(request)
        return found.prefetch_related("api_key__versions")

    @admin.display(description="API key", ordering="api_key")
    def key(self, limits: KeyLimits) -> str:
        return key_label(limits.api_key)

    def formfield_for_foreignkey(
        self, db_field: Any, request: HttpRequest, **kwargs: Any
    ) -> Any:
        """Let staff select a key by its name, hint and owner."""
        if db_field.name == "api_key":
            kwargs["form_class"] = KeyChoiceField
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def get_readonly_fields(
        self, request: HttpRequest, obj: KeyLimits | None = None
    ) -> list[str]:
        return [] if obj is None else ["api_key"]

    def has_delete_permission(
        self, request: HttpRequest, obj: Model | None = None
    ) -> bool:
        return False  # staff clear the fields instead, which the audit log records

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


class SpanFilter(admin.SimpleListFilter):
    """Filter usage by span. Each call is counted in one row of each span."""

    title = "span"
    parameter_name = "span__exact"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the spans."""
        return [(str(value), label) for value, label in Span.choices]

    def value(self) -> str:
        """Return the selected span. By default, it is that of the first chart."""
        chosen = super().value()
        known = [str(value) for value in Span.values]
        return chosen if chosen in known else str(RANGES[DEFAULT].span.value)

    def choices(self, changelist: ChangeList) -> Iterator[Any]:
        """Return the links, without a link to all spans together."""
        _all, *spans = super().choices(changelist)
        yield from spans

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[UsageBucket]
    ) -> QuerySet[UsageBucket]:
        """Return the rows of a span. Without a key, only the latest ones."""
        rows = queryset.filter(span=self.value())
        if request.GET.get(SEARCH_VAR, "").strip():
            return rows
        of_span = UsageBucket.objects.filter(span=self.value())
        latest = of_span.order_by("-start").values("pk")[:LATEST]
        return rows.filter(pk__in=latest)


@admin.register(UsageBucket)
class UsageBucketAdmin(SearchByKey, ReadOnly, _UsageAdmin):
    """The usage rows of keys, read-only."""

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
    list_filter = [SpanFilter, "outcome", "network"]
    list_select_related = ["api_key", "network"]
    ordering = ["-start", "-id"]
