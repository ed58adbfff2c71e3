"""The Content-Security-Policy of the admin's pages."""

from __future__ import annotations

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.deprecation import MiddlewareMixin

from keys.policy import CALLING_POLICY

HEADER = "Content-Security-Policy"


class AdminPolicy(MiddlewareMixin):
    """Adds a policy that allows script files of this site and requests to this site.

    Inline scripts are blocked, so that an unescaped name can't run code. This is a
    middleware, because log-in, redirects and the pages of the second factor share no
    view. Responses that have a policy, such as error pages, keep it.
    """

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        """Set the header on every response below `/admin/`."""
        if request.path_info.startswith(reverse("admin:index")):
            response.headers.setdefault(HEADER, CALLING_POLICY)
        return response
