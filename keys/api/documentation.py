"""The OpenAPI document, and the answer at addresses where there is nothing."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe
from rest_framework.request import Request
from rest_framework.response import Response

from keys.api.schema import document
from keys.api.views import ManagementView


@require_safe
def openapi(request: HttpRequest) -> HttpResponse:
    """Answer with the OpenAPI document, to anybody."""
    answer = JsonResponse(document())
    answer["Access-Control-Allow-Origin"] = "*"
    return answer


class NowhereView(ManagementView):
    """Tells who gets an address wrong, in the form of all other refusals."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Refuse. Raises: Http404."""
        raise Http404

    def get(self, request: Request, rest: str) -> Response:
        """Never get here: `initial` has refused."""
        raise Http404

    post = put = patch = delete = get
