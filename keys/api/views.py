"""Base class of the views of the management API."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple, TypeVar

import orjson
from django.db.models import Model, QuerySet
from rest_framework.exceptions import (
    NotAuthenticated,
    NotFound,
    ParseError,
    PermissionDenied,
)
from rest_framework.pagination import BasePagination, CursorPagination
from rest_framework.parsers import JSONParser
from rest_framework.permissions import BasePermission
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer
from rest_framework.views import APIView

from keys.api import problems
from keys.api.authentication import TokenAuthentication
from keys.api.filters import Filter, read_number
from keys.api.throttling import TokenThrottle
from keys.models import ApiToken, Scope, User
from keys.services import Actor
from keys.site import base_url

_M = TypeVar("_M", bound=Model)


class Need(NamedTuple):
    """Requirements of a request.

    scope: required of the token.
    permission: required of the token's owner, as a Django permission name.
    """

    scope: Scope
    permission: str


class Permitted(BasePermission):
    """Requires the scope of the token and the permission of its owner."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        """Return True if the request is permitted.

        Raises: NotAuthenticated without a token; PermissionDenied naming the missing
            scope or permission.
        """
        token = request.auth
        if not isinstance(token, ApiToken):
            raise NotAuthenticated(
                "Send a token in the header Authorization: Bearer <token>."
            )
        assert isinstance(view, ManagementView)
        need = view.needs.get(request.method or "")
        if need is None:  # an unsupported method: 405 follows
            return True
        if need.scope not in token.scopes:
            raise PermissionDenied(f"The token lacks the scope {need.scope}.")
        if not token.owner.has_perm(need.permission):
            raise PermissionDenied(
                f"The token's owner lacks the permission {need.permission}."
            )
        return True


class Pages(CursorPagination):
    """Cursor pagination, the newest rows first. New rows do not shift pages."""

    page_size = 100
    page_size_query_param = "page_size"
    max_page_size = 1000
    ordering = "-id"

    def decode_cursor(self, request: Request) -> Any:
        """Return the position of a page. Raises: NotFound for an invalid cursor."""
        cursor = super().decode_cursor(request)
        if cursor is not None and cursor.position is not None:
            try:
                read_number(str(cursor.position))
            except ValueError as error:
                raise NotFound(self.invalid_cursor_message) from error
        return cursor


class Json(JSONParser):
    """Strict JSON (RFC 8259): no lone surrogates, no NaN, bounded nesting."""

    def parse(self, stream: Any, *_: Any, **__: Any) -> Any:
        """Return the parsed body. Raises: ParseError if it is not strict JSON."""
        try:
            return orjson.loads(stream.read())
        except orjson.JSONDecodeError as error:
            raise ParseError(f"JSON parse error - {error}") from error


class ManagementView(APIView):
    """Base class: token authentication, JSON only. Session cookies are not accepted.

    needs: the requirements of a request, by HTTP method.
    filters: query parameters of a list, by name.
    pagination_class: pagination of the lists that `paged` returns.
    """

    authentication_classes = [TokenAuthentication]
    permission_classes = [Permitted]
    throttle_classes = [TokenThrottle]
    parser_classes = [Json]
    renderer_classes = [JSONRenderer]
    pagination_class: type[BasePagination] | None = Pages
    filters: ClassVar[dict[str, Filter]] = {}
    needs: ClassVar[dict[str, Need]] = {}

    def get_exception_handler(self) -> Any:
        """Return the function that converts exceptions to problem details."""
        return problems.handle

    def finalize_response(
        self, request: Request, response: Response, *args: Any, **kwargs: Any
    ) -> Response:
        """Forbid caching of the response."""
        finished = super().finalize_response(request, response, *args, **kwargs)
        finished["Cache-Control"] = "no-store"
        return finished

    def actor(self) -> Actor:
        """Return the author of the request's changes, for the audit log."""
        token = self.request.auth
        assert isinstance(token, ApiToken)
        assert isinstance(self.request.user, User)
        address = self.request.META.get("REMOTE_ADDR") or None
        return Actor(self.request.user, address, token)

    def paged(
        self,
        rows: QuerySet[_M],
        document: type[BaseSerializer[_M]],
        *,
        ordering: str = "-id",
    ) -> Response:
        """Return the requested page of a list."""
        pages = Pages()
        pages.ordering = ordering
        page: Any = pages.paginate_queryset(rows, self.request, view=self)
        # Of the links to other pages, which begin with the request's host by default.
        pages.base_url = base_url(self.request) + self.request.get_full_path()
        return pages.get_paginated_response(document(page, many=True).data)
