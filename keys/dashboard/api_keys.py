"""The list of a customer's keys, and the page of each."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from keys.dashboard.access import dashboard_page, own_key, user_of
from keys.models import ApiKey


@dashboard_page
@require_safe
def index(request: HttpRequest) -> HttpResponse:
    """Show the keys."""
    own = ApiKey.objects.kept().filter(owner=user_of(request))
    return render(request, "dashboard/keys.html", {"keys": own})


@dashboard_page
@require_safe
def key(request: HttpRequest, pk: int) -> HttpResponse:
    """Show a key."""
    return render(request, "dashboard/key.html", {"key": own_key(request, pk)})
