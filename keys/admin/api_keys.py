"""API keys, their events and their requests for access in the admin."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import ValidationError
from django.db.models import Exists, Model, OuterRef, Prefetch, QuerySet, Subquery
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.http import urlencode
from django.utils.safestring import mark_safe

import keys.admin.limits
import keys.admin.members
import keys.admin.tokens  # noqa: F401  # all register their pages
from keys import format as key_format
from keys.accounts.acting import actor_of
from keys.admin.access import AccessRequestAdmin
from keys.admin.entitlements import EntitlementInline, TracingFilter, save_entitlements
from keys.admin.events import KeyEventAdmin
from keys.admin.fields import ShownField
from keys.admin.key_actions import KeyActions
from keys.admin.lists import LongList
from keys.admin.search import api_keys_like
from keys.admin.users import UserAdmin
from keys.agreements import agreement_of
from keys.allowlists import MAX_ENTRIES
from keys.audit_sentences import key_label, sentence_of
from keys.models import (
    AllowlistEntry,
    AllowlistKind,
    ApiKey,
    DailyUse,
    Entitlement,
    KeyVersion,
    KeyVersionUse,
)
from keys.services import (
    Actor,
    create_key,
    disable_key,
    enable_key,
    reveal_key,
    set_allowlist,
    update_key,
)
from keys.states import State, in_state, live_versions, state_of
from keys.usage.daily import today
from networks.models import Network

if TYPE_CHECKING:  # the classes are generic for the type checker alone
    _KeyVersionInline = admin.TabularInline[KeyVersion, ApiKey]
    _AllowlistInline = admin.TabularInline[AllowlistEntry, ApiKey]
    _ApiKeyForm = ModelForm[ApiKey]
else:
    _KeyVersionInline = _AllowlistInline = admin.TabularInline
    _ApiKeyForm = ModelForm

__all__ = ["AccessRequestAdmin", "ApiKeyAdmin", "KeyEventAdmin", "UserAdmin"]

IDLE = timedelta(days=90)
"""Staff should revoke a key that has not been used for this time."""

SHOWN_EVENTS = 20
"""Events listed on a key's page. All events are listed on a page of their own."""


_FIELDS = ["owner", "name", "is_enabled", "networks", "expires_at", "staff_note"]
"""Fields of a key that staff may change."""


class KeyVersionInline(_KeyVersionInline):
    verbose_name = "secret"
    verbose_name_plural = "secrets"
    model = KeyVersion
    fk_name = "api_key"
    extra = 0
    fields = ("hint", "created_at", "expires_at", "revoked_at", "revoke_reason")
    readonly_fields = (
        "hint",
        "created_at",
        "expires_at",
        "revoked_at",
        "revoke_reason",
    )
    can_delete = False

    def has_add_permission(
        self, request: HttpRequest, obj: ApiKey | None = None
    ) -> bool:
        return False


class AllowlistInline(_AllowlistInline):
    verbose_name_plural = "allowlist entries"
    model = AllowlistEntry
    extra = 0
    max_num = MAX_ENTRIES * len(AllowlistKind)

    def has_add_permission(
        self, request: HttpRequest, obj: ApiKey | None = None
    ) -> bool:
        return request.user.has_perm("keys.change_apikey")

    def has_change_permission(
        self, request: HttpRequest, obj: Model | None = None
    ) -> bool:
        return request.user.has_perm("keys.change_apikey")

    def has_delete_permission(
        self, request: HttpRequest, obj: Model | None = None
    ) -> bool:
        return request.user.has_perm("keys.change_apikey")


def save_allowlists(api_key: ApiKey, formset: Any, actor: Actor) -> list[str]:
    """Replace a key's allowlists by a formset's entries, and return error messages.

    Lists without a changed row are not written, because the owner may have changed them
    in the meantime.
    """
    rows = [row.cleaned_data for row in formset.forms if row.cleaned_data]
    kept = [row for row in rows if not row.get("DELETE") and "value" in row]
    changed = [row for row in formset.forms if row.has_changed()]
    kinds = {row.initial.get("kind") for row in changed}
    kinds |= {row.cleaned_data.get("kind") for row in changed}
    faults = []
    for kind in (kind for kind in AllowlistKind.values if kind in kinds):
        values = [row["value"] for row in kept if row["kind"] == kind]
        try:
            set_allowlist(api_key=api_key, kind=kind, values=values, actor=actor)
        except ValidationError as error:
            faults.append(" ".join(error.messages))
    return faults


class StateFilter(admin.SimpleListFilter):
    """Filter keys by state.

    Deleted keys are only listed if this filter selects them.
    """

    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the states as pairs of value and label."""
        return list(State.choices)

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[ApiKey]
    ) -> QuerySet[ApiKey]:
        """Return the keys in the selected state."""
        if self.value() is None:
            return queryset.filter(deleted_at=None)
        return in_state(queryset, str(self.value()))


class UseFilter(admin.SimpleListFilter):
    """Filter for keys that appear to be unused."""

    title = "use"
    parameter_name = "use"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the choices as pairs of value and label."""
        return [("never", "never used"), ("idle", f"unused for {IDLE.days} days")]

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[ApiKey]
    ) -> QuerySet[ApiKey]:
        """Return the keys that were never used, or not since `IDLE`, as selected."""
        uses = KeyVersionUse.objects.filter(version__api_key=OuterRef("pk"))
        if self.value() == "never":
            return queryset.exclude(Exists(uses))
        if self.value() == "idle":
            since = timezone.now() - IDLE
            lately = Exists(uses.filter(last_used_at__gte=since))
            return queryset.filter(Exists(uses)).exclude(lately)
        return queryset


class NetworkFilter(admin.RelatedFieldListFilter):
    """Filter keys by a selected network, or for keys of all networks."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.empty_value_display = mark_safe("all networks")


class ExpiryFilter(admin.EmptyFieldListFilter):
    """Filter for keys with or without an expiry."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.title = "expiry"

    def choices(self, changelist: ChangeList) -> Iterator[Any]:
        """Return the links, with words for Django's "Empty" and "Not empty"."""
        words = ["All", "no expiry", "with an expiry"]
        for choice, display in zip(super().choices(changelist), words, strict=True):
            yield {**choice, "display": display}


class ApiKeyForm(_ApiKeyForm):
    """Form of an API key. For a new key, staff choose whether they pass on its secret.

    Hidden inputs contain the initial values. A field that staff did not change is not
    written, because another user may have changed it in the meantime.
    """

    bound_field_class = ShownField

    show_secret = forms.BooleanField(
        required=False,
        help_text="The secret is shown once on the next page, so that you can pass it on. "
        "Otherwise the customer reveals it in the dashboard.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            field.show_hidden_initial = self.instance.pk is not None

    def clean(self) -> dict[str, Any]:
        """Reject a new expiry in the past. An unchanged expiry may be in the past."""
        cleaned = super().clean() or {}
        expires_at = cleaned.get("expires_at")
        is_new = "expires_at" in self.changed_data
        if is_new and expires_at is not None and expires_at <= timezone.now():
            self.add_error("expires_at", "The expiry is in the past.")
        return cleaned


def _shown_in_the_list() -> list[Any]:
    """Return the prefetches of the list of keys, restricted to the columns shown."""
    versions = KeyVersion.objects.select_related("use").only(
        "api_key", "hint", "expires_at", "revoked_at", "use__last_used_at"
    )
    granted = (
        Entitlement.objects.select_related("network")
        .only("api_key", "expires_at", "network__slug")
        .order_by("network_id", "capability")
    )
    return [
        Prefetch("versions", versions),
        # `to_attr` creates lists, which cost less time than related managers.
        Prefetch("entitlements", granted, to_attr="granted"),
        Prefetch("networks", Network.objects.only("slug"), to_attr="opened"),
    ]


@admin.register(ApiKey)
class ApiKeyAdmin(LongList, KeyActions):
    """API keys. A secret is shown once, in the response to the request that made it."""

    form = ApiKeyForm
    inlines = [EntitlementInline, KeyVersionInline, AllowlistInline]
    list_display = [
        *("__str__", "hints", "owner", "opens", "state"),
        *("credits_today", "last_used", "tracing"),
    ]
    list_filter = [
        StateFilter,
        UseFilter,
        ("networks", NetworkFilter),
        TracingFilter,
        ("expires_at", ExpiryFilter),
    ]
    list_select_related = ["owner"]
    search_fields = ["owner__email", "name", "versions__hint"]
    search_help_text = "Beginning of an owner's email address, part of a key's name, a hint, or a secret."
    autocomplete_fields = ["owner"]
    filter_horizontal = ["networks"]

    def get_fields(self, request: HttpRequest, obj: ApiKey | None = None) -> Any:
        if obj is None:
            return [*_FIELDS, "show_secret"]
        return ["owner", "state", "plan", *_FIELDS[1:], "events"]

    def get_readonly_fields(
        self, request: HttpRequest, obj: ApiKey | None = None
    ) -> list[str]:
        # The owner can't be changed, because the former owner would know the secrets.
        return [] if obj is None else ["owner", "state", "plan", "events"]

    def get_inlines(self, request: HttpRequest, obj: ApiKey | None) -> list[Any]:
        """Return the tables below the form. A new key has no secrets yet."""
        inlines = list(super().get_inlines(request, obj))
        return inlines if obj else [one for one in inlines if one != KeyVersionInline]

    def get_queryset(self, request: HttpRequest) -> QuerySet[ApiKey]:
        keys: QuerySet[ApiKey] = super().get_queryset(request)
        keys = keys.select_related("owner").prefetch_related(*_shown_in_the_list())
        used = DailyUse.objects.filter(day=today(), api_key=OuterRef("pk"))
        return keys.annotate(spent_today=Subquery(used.values("credits")))

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[ApiKey], search_term: str
    ) -> tuple[QuerySet[ApiKey], bool]:
        """Return the keys that match the search term, without duplicates."""
        if term := search_term.strip():
            queryset = queryset.filter(pk__in=api_keys_like(term))
        return queryset, False

    def selector_label(self, obj: ApiKey) -> str:
        """Return the label of a key in the selection fields of other pages."""
        return key_label(obj)

    @admin.display(description="valid secrets")
    def hints(self, api_key: ApiKey) -> str:
        return ", ".join(version.hint for version in live_versions(api_key)) or "-"

    @admin.display(description="networks")
    def opens(self, api_key: Any) -> str:
        return ", ".join(network.slug for network in api_key.opened) or "all"

    @admin.display(description="credits today")
    def credits_today(self, api_key: Any) -> str:
        return f"{api_key.spent_today or 0:,}"

    @admin.display(description="state")
    def state(self, api_key: ApiKey) -> str:
        return state_of(api_key).label

    @admin.display(description="plan and limits")
    def plan(self, api_key: ApiKey) -> str:
        agreement = agreement_of(api_key)
        plan = "no plan" if agreement.plan is None else str(agreement.plan)
        if agreement.has_own_terms:
            plan += ", with custom limits"
        limits = agreement.limits
        if limits is None:
            return f"{plan}: no limits"
        daily = (
            f"{limits.daily:,} credits per day" if limits.daily else "no daily quota"
        )
        return f"{plan}: {limits.rate:,} credits per second, burst {limits.burst:,}, {daily}"

    @admin.display(description="last used")
    def last_used(self, api_key: ApiKey) -> str:
        uses = [v.use.last_used_at for v in api_key.versions.all() if hasattr(v, "use")]
        return f"{max(uses):%Y-%m-%d %H:%M}" if uses else "-"

    @admin.display(description="may trace on")
    def tracing(self, api_key: Any) -> str:
        now = timezone.now()
        granted = [
            entitlement.network.slug
            for entitlement in api_key.granted
            if entitlement.expires_at is None or entitlement.expires_at > now
        ]
        return ", ".join(granted) or "-"

    @admin.display(description="latest events")
    def events(self, api_key: ApiKey) -> str:
        latest = api_key.events.select_related("actor", "token")[:SHOWN_EVENTS]
        lines = []
        for event in latest:
            event.api_key = api_key  # with its owner and versions
            lines.append((f"{event.at:%Y-%m-%d %H:%M}", str(sentence_of(event))))
        rows = format_html_join("", "<li>{} · {}</li>", lines)
        return format_html('<ul class="latest">{}</ul>', rows) if rows else "-"

    def has_change_permission(
        self, request: HttpRequest, obj: ApiKey | None = None
    ) -> bool:
        is_deleted = obj is not None and obj.deleted_at is not None
        return not is_deleted and super().has_change_permission(request, obj)

    def has_delete_permission(
        self, request: HttpRequest, obj: Model | None = None
    ) -> bool:
        return False  # the admin action deletes keys, and keeps their usage and events

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Find a pasted key by its digest, so that no URL and no log contains it."""
        pasted = request.GET.get("q", "").strip()
        if not key_format.is_well_formed(pasted):
            return super().changelist_view(request, extra_context)
        digest = key_format.digest(pasted)
        version = KeyVersion.objects.filter(digest=digest).first()
        if version is None:
            self.message_user(request, "No API key has this secret.", messages.WARNING)
            return HttpResponseRedirect(request.path)
        return HttpResponseRedirect(f"{request.path}?{urlencode({'q': version.hint})}")

    def save_model(
        self, request: HttpRequest, obj: ApiKey, form: ModelForm[ApiKey], change: bool
    ) -> None:
        """Save the changed fields with `keys.services`, which record the changes."""
        fields = form.cleaned_data
        if change:
            fields = {name: fields[name] for name in form.changed_data}
        actor = actor_of(request)
        terms = {
            name: fields[name]
            for name in ("name", "networks", "expires_at", "staff_note")
            if name in fields
        }
        if change:
            update_key(api_key=obj, actor=actor, **terms)
        else:
            obj.pk = create_key(owner=fields["owner"], actor=actor, **terms).pk
        if "is_enabled" in fields:
            switch = enable_key if fields["is_enabled"] else disable_key
            switch(api_key=obj, actor=actor)
        obj.refresh_from_db()

    def save_related(
        self, request: HttpRequest, form: Any, formsets: Any, change: bool
    ) -> None:
        """Save only the inlines. `save_model` has already saved the networks."""
        for formset in formsets:
            self.save_formset(request, form, formset, change)

    def save_formset(
        self, request: HttpRequest, form: Any, formset: Any, change: bool
    ) -> None:
        """Save the rows of an inline with `keys.services`."""
        actor = actor_of(request)
        if formset.model is Entitlement:
            faults = save_entitlements(formset, actor=actor)
        else:
            # This saves nothing. It collects the changes for Django's own log.
            formset.save(commit=False)
            faults = []
        if formset.model is AllowlistEntry:
            faults = save_allowlists(form.instance, formset, actor)
        for fault in faults:
            self.message_user(request, fault, messages.ERROR)

    def response_add(
        self, request: HttpRequest, obj: ApiKey, post_url_continue: str | None = None
    ) -> HttpResponse:
        """Show the secret in the response if staff pass it on to the customer."""
        if not request.POST.get("show_secret"):
            return super().response_add(request, obj, post_url_continue)
        return self.show_secret(
            request, reveal_key(api_key=obj, actor=actor_of(request))
        )
