"""How the management API describes itself: OpenAPI, made from the views.

Source: https://spec.openapis.org/oas/v3.0.3
"""

from __future__ import annotations

import inspect
from functools import cache
from typing import TYPE_CHECKING, Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.settings import patched_settings
from drf_spectacular.utils import OpenApiParameter

from keys.api.filters import described

if TYPE_CHECKING:  # views have this as their schema
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
    "description": "RFC 9457. `errors` has messages by field, where fields are wrong.",
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
_REFUSED = {
    "description": "Refused",
    "content": {
        "application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}
    },
}

_REPEATABLE = OpenApiParameter(
    "Idempotency-Key",
    location=OpenApiParameter.HEADER,
    description="Sent again with the same value within 24 hours, the request changes "
    "nothing more and is answered as before, but for a secret.",
)


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]  # registers itself
    """Describes how requests show their token."""

    target_class = "keys.api.authentication.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, Any]:
        """Return the scheme: a token in the Authorization header."""
        return {"type": "http", "scheme": "bearer", "bearerFormat": "mt_…"}


class DescribedSchema(AutoSchema):
    """Takes words from the handlers' docstrings, and scopes from the views' needs."""

    def get_operation(self, *args: Any, **kwargs: Any) -> dict[str, Any] | None:
        """Return the description of one method of one path."""
        operation: dict[str, Any] | None = super().get_operation(*args, **kwargs)
        if operation is None:
            return None
        need = self._management_view().needs.get(self.method)
        if need is not None:
            operation["x-scope"] = str(need.scope)
            operation["x-permission"] = need.permission
        operation["responses"]["default"] = _REFUSED
        return operation

    def get_summary(self) -> str:
        """Return the first line of the handler's docstring."""
        return self._doc().partition("\n")[0].rstrip(".")

    def get_description(self) -> str:  # type: ignore[override]  # drf-spectacular's
        """Return the rest of it."""
        return " ".join(self._doc().partition("\n")[2].split())

    def get_operation_id(self) -> str:
        """Return the name of the handler: each is one operation's."""
        return f"{self.method.lower()}{type(self.view).__name__.removesuffix('View')}"

    def get_override_parameters(self) -> list[Any]:
        """Return what a list may be narrowed by, and the key of what may be repeated."""
        if self.method == "GET":
            return described(self._management_view().filters)
        handler = getattr(self.view, self.method.lower())
        return [_REPEATABLE] if getattr(handler, "is_repeatable", False) else []

    def get_tags(self) -> list[str]:
        """Return the name of the view's module."""
        return [type(self.view).__module__.rpartition(".")[2]]

    def _management_view(self) -> ManagementView:
        view: ManagementView = self.view  # type: ignore[assignment]  # all ours are such
        return view

    def _doc(self) -> str:
        handler = getattr(self.view, self.method.lower())
        return inspect.getdoc(inspect.unwrap(handler)) or ""


@cache
def document() -> dict[str, Any]:
    """Return the OpenAPI document of all views."""
    from keys.api import urls  # which import the views, which import this module

    with patched_settings(_SETTINGS):
        generator = SchemaGenerator(patterns=urls.described)  # type: ignore[no-untyped-call]
        made: dict[str, Any] = generator.get_schema(public=True)  # type: ignore[no-untyped-call]
    made["components"]["schemas"]["Problem"] = _PROBLEM
    made["paths"] = {f"/api/v1{path}": item for path, item in made["paths"].items()}
    return made
