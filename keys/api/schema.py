"""OpenAPI descriptions of the management API's operations, generated from its views.

Source: https://spec.openapis.org/oas/v3.0.3
"""

from __future__ import annotations

import inspect
from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter

from keys.api.filters import described
from keys.api.views import ManagementView

_REFUSED = {
    "description": "An error",
    "content": {
        "application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}
    },
}

_REPEATABLE = OpenApiParameter(
    "Idempotency-Key",
    location=OpenApiParameter.HEADER,
    description="If the request is repeated with the same value within 24 hours, it "
    "changes nothing and returns the same response, without the secret.",
)


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]  # registers itself
    """Describes how a request is authenticated."""

    target_class = "keys.api.authentication.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, Any]:
        """Return the scheme: a token in the Authorization header."""
        return {"type": "http", "scheme": "bearer", "bearerFormat": "mt_…"}


class DescribedSchema(AutoSchema):
    """Describes an operation by its handler's docstring and the scope that it requires.

    The setting `REST_FRAMEWORK` makes it the schema of every view.
    """

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
        """Return the handler's docstring without its first line."""
        return " ".join(self._doc().partition("\n")[2].split())

    def get_operation_id(self) -> str:
        """Return an id from the method and the view, such as `getKeys`."""
        return f"{self.method.lower()}{type(self.view).__name__.removesuffix('View')}"

    def get_override_parameters(self) -> list[Any]:
        """Return the filters of a list, or the header that makes a change idempotent."""
        if self.method == "GET":
            return described(self._management_view().filters)
        handler = getattr(self.view, self.method.lower())
        return [_REPEATABLE] if getattr(handler, "is_repeatable", False) else []

    def get_tags(self) -> list[str]:
        """Return the name of the view's module, which groups the operations."""
        return [type(self.view).__module__.rpartition(".")[2]]

    def _management_view(self) -> ManagementView:
        view: ManagementView = self.view  # type: ignore[assignment]  # drf-spectacular says APIView
        return view

    def _doc(self) -> str:
        handler = getattr(self.view, self.method.lower())
        return inspect.getdoc(inspect.unwrap(handler)) or ""
