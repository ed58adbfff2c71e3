"""The OpenAPI document, and the response for unknown paths."""

from __future__ import annotations

from functools import cache
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.settings import patched_settings
from rest_framework.request import Request
from rest_framework.response import Response

from keys.api.operations import operations
from keys.api.views import ManagementView

_SETTINGS = {
    "TITLE": "Portcullis management API",
    "DESCRIPTION": "Customers, keys, limits, entitlements, usage and events, for "
    "programs of the provider.",
    "VERSION": "1",
    "LICENSE": {"name": "MIT"},
    "COMPONENT_SPLIT_REQUEST": True,
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    "DISABLE_ERRORS_AND_WARNINGS": False,
}

_PROBLEM = {
    "type": "object",
    "description": "Problem details (RFC 9457). `errors` has messages by field if fields "
    "are invalid.",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "errors": {
            "type": "object",
            "additionalProperties": {"type": "array", "items": {"type": "string"}},
        },
    },
}


@cache
def document() -> dict[str, Any]:
    """Return the OpenAPI document of all operations."""
    with patched_settings(_SETTINGS):
        generator = SchemaGenerator(patterns=operations)  # type: ignore[no-untyped-call]
        schema: dict[str, Any] = generator.get_schema(public=True)  # type: ignore[no-untyped-call]
    schema["components"]["schemas"]["Problem"] = _PROBLEM
    schema["paths"] = {f"/api/v1{path}": item for path, item in schema["paths"].items()}
    return schema


@require_safe
def openapi(request: HttpRequest) -> HttpResponse:
    """Answer with the OpenAPI document. No token is required."""
    answer = JsonResponse(document())
    answer["Access-Control-Allow-Origin"] = "*"
    return answer


class UnknownPathView(ManagementView):
    """Answers 404 with problem details for paths that do not exist."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Raise Http404 for every request, before authentication."""
        raise Http404

    def get(self, request: Request, rest: str) -> Response:
        """Not reached, because `initial` has raised."""
        raise Http404

    post = put = patch = delete = get
