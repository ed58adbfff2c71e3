"""Error pages with the product's design, used by `config.urls` and the settings.

They have the same Content-Security-Policy as other pages, because the failed request can
contain anything.
"""

from __future__ import annotations

from urllib.parse import unquote_plus

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils.deprecation import MiddlewareMixin
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


class RejectNul(MiddlewareMixin):
    """Answers 400 to a request with the character NUL in its address, query or cookies.

    No text in PostgreSQL contains NUL, and a query with it is an error. The management
    API is left out, because it names the wrong parameter in documents of its own.
    """

    def process_request(self, request: HttpRequest) -> HttpResponseBase | None:
        """Return the error page, None to go on."""
        query = unquote_plus(request.META.get("QUERY_STRING", ""))
        has_nul = "\0" in query or "\0" in "".join(
            [request.path_info, *request.COOKIES.values()]
        )
        if not has_nul or request.path_info.startswith("/api/"):
            return None
        return bad_request(request, ValueError("NUL"))
