"""Pages for what goes wrong, in the product's look; `config.urls` and settings name them.

They are under the same policy as other pages: what went wrong may have come from anywhere.
"""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views import defaults

from keys.policy import without_scripts

bad_request = without_scripts(defaults.bad_request)
forbidden = without_scripts(defaults.permission_denied)
not_found = without_scripts(defaults.page_not_found)
crashed = without_scripts(defaults.server_error)


@without_scripts
def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Say that a form came from elsewhere, or without its cookie; why is for the log."""
    return render(request, "403_csrf.html", status=403)
