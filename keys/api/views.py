"""What all views of the management API have in common."""

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
from keys.api.schema import DescribedSchema
from keys.api.throttling import TokenThrottle
from keys.models import ApiToken, Scope, User
from keys.services import Actor

_M = TypeVar("_M", bound=Model)


class Need(NamedTuple):
    """What a request must have been given.

    scope: of the token. permission: of its owner, in Django's words.
    """

    scope: Scope
    permission: str


class Permitted(BasePermission):
    """Asks the token for the scope, and its owner for the permission."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        """Return True. Raises: NotAuthenticated, PermissionDenied saying what lacks."""
        token = request.auth
        if not isinstance(token, ApiToken):
            raise NotAuthenticated("Authorization: Bearer and a token are required.")
        assert isinstance(view, ManagementView)
        need = view.needs.get(request.method or "")
        if need is None:  # a method that the view has not: 405 follows
            return True
        if need.scope not in token.scopes:
            raise PermissionDenied(f"The token lacks the scope {need.scope}.")
        if not token.owner.has_perm(need.permission):
            raise PermissionDenied(
                f"The token's owner lacks the permission {need.permission}."
            )
        return True


class Pages(CursorPagination):
    """Pages that stay in place while rows are added; the newest come first."""

    page_size = 100
    page_size_query_param = "page_size"
    max_page_size = 1000
    ordering = "-id"

    def decode_cursor(self, request: Request) -> Any:
        """Return where the page begins. Raises: NotFound for what we have not made."""
        cursor = super().decode_cursor(request)
        if cursor is not None and cursor.position is not None:
            try:
                read_number(str(cursor.position))
            except ValueError as error:
                raise NotFound(self.invalid_cursor_message) from error
        return cursor


class Json(JSONParser):
    """JSON as RFC 8259 has it: no half characters, no NaN, and no depths that we drown in."""

    def parse(self, stream: Any, *_: Any, **__: Any) -> Any:
        """Return what a body says. Raises: ParseError."""
        try:
            return orjson.loads(stream.read())
        except orjson.JSONDecodeError as error:
            raise ParseError(f"JSON parse error - {error}") from error


class ManagementView(APIView):
    """A view for programs: tokens and JSON, nothing from and for browsers.

    needs: by HTTP method.
    filters: what a GET may be narrowed by.
    pagination_class: of lists, as `paged` answers with them.
    """

    authentication_classes = [TokenAuthentication]
    permission_classes = [Permitted]
    throttle_classes = [TokenThrottle]
    parser_classes = [Json]
    renderer_classes = [JSONRenderer]
    pagination_class: type[BasePagination] | None = Pages
    schema = DescribedSchema()
    filters: ClassVar[dict[str, Filter]] = {}
    needs: ClassVar[dict[str, Need]] = {}

    def get_exception_handler(self) -> Any:
        """Return what makes problem details of exceptions."""
        return problems.handle

    def finalize_response(
        self, request: Request, response: Response, *args: Any, **kwargs: Any
    ) -> Response:
        """Keep the answer out of caches."""
        finished = super().finalize_response(request, response, *args, **kwargs)
        finished["Cache-Control"] = "no-store"
        return finished

    def actor(self) -> Actor:
        """Return who makes the request's changes."""
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
        """Answer with the page that the request asks for."""
        pages = Pages()
        pages.ordering = ordering
        page: Any = pages.paginate_queryset(rows, self.request, view=self)
        return pages.get_paginated_response(document(page, many=True).data)
