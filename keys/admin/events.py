"""The audit log of all keys in the admin, read-only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from keys.admin.lists import ReadOnly
from keys.admin.search import api_keys_named
from keys.audit_sentences import sentence_of
from keys.models import KeyEvent, User

if TYPE_CHECKING:  # the class is generic for the type checker alone
    _KeyEventAdmin = admin.ModelAdmin[KeyEvent]
else:
    _KeyEventAdmin = admin.ModelAdmin


@admin.register(KeyEvent)
class KeyEventAdmin(ReadOnly, _KeyEventAdmin):
    """The audit log of keys."""

    list_display = ["at", "sentence"]
    list_filter = ["type"]
    list_select_related = ["api_key__owner", "actor", "token"]
    fields = ["at", "sentence", "type", "actor", "token", "actor_ip", "data"]
    search_fields = ["api_key", "actor"]
    search_help_text = "Id of a key, or full email address of its owner or of an actor."

    def get_queryset(self, request: HttpRequest) -> QuerySet[KeyEvent]:
        found: QuerySet[KeyEvent] = super().get_queryset(request)
        return found.prefetch_related("api_key__versions")

    @admin.display(description="event")
    def sentence(self, event: KeyEvent) -> SafeString:
        words = sentence_of(event)
        address = reverse("admin:keys_apikey_change", args=[event.api_key_id])
        return format_html(
            '{}<a href="{}">{}</a>{}', words.before, address, words.key, words.after
        )

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[KeyEvent], search_term: str
    ) -> tuple[QuerySet[KeyEvent], bool]:
        """Return the events of the matching keys, and those whose actor matches."""
        if term := search_term.strip():
            email = User.objects.normalize_email(term)
            actors = list(User.objects.filter(email=email).values_list("pk", flat=True))
            by_key = Q(api_key__in=api_keys_named(term))
            queryset = queryset.filter(by_key | Q(actor__in=actors))
        return queryset, False
