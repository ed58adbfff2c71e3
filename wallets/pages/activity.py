"""The page of the activity log."""

from __future__ import annotations

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from wallets.models import Activity
from wallets.pages.policy import user_of, wallet_page

LINES = 50
"""Entries per page."""


@wallet_page
@require_safe
def activity(request: HttpRequest) -> HttpResponse:
    """Show the user's activity log, newest first, in pages."""
    lines = Activity.objects.filter(user=user_of(request))
    page = Paginator(lines, LINES).get_page(request.GET.get("page"))
    return render(request, "wallets/activity.html", {"page": page})
