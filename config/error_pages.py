"""Error pages with the product's design, used by `config.urls` and the settings.

They have the same Content-Security-Policy as other pages, because the failed request can
contain anything.
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
    """Explain that the form failed CSRF protection; the reason is only logged."""
    return render(request, "403_csrf.html", status=403)
