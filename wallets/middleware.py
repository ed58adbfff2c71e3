"""Middleware: a window that connect.js opens stays connected to the page that opened it.

The page notices when the user closes the window, and gets the answer to a pairing. All
other pages of this site cut the connection (Cross-Origin-Opener-Policy), and so does a
login that does not lead back to such a window.
"""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

from django.http import HttpRequest, HttpResponse
from django.urls import reverse

LED_BY = "of"
"""The parameter with the origin of the page that opened the window."""


class WindowPolicy:
    """Keeps the opener of windows, and of logins that lead back to them."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Return the response with a policy for its opener."""
        response = self._get_response(request)
        if _is_window(request.get_full_path()) or _leads_to_window(request):
            response["Cross-Origin-Opener-Policy"] = "unsafe-none"
        return response


def _is_window(address: str) -> bool:
    """Return whether a path with its query is that of a window."""
    try:
        path, query = urlsplit(address)[2:4]
    except ValueError:  # the `next` of a login can be any text
        return False
    if path == reverse("wallet:connect"):
        return True
    return path.startswith(reverse("wallet:inbox")) and LED_BY in parse_qs(query)


def _leads_to_window(request: HttpRequest) -> bool:
    if request.path != reverse("login"):
        return False
    following = request.GET.get("next") or request.POST.get("next") or ""
    return _is_window(following)
