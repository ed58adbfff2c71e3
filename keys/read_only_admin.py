"""What pages of the admin share that only show, and lists of very many rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.functional import cached_property

if TYPE_CHECKING:  # the class is generic for the type checker alone
    _Paginator = Paginator[Any]
else:
    _Paginator = Paginator

MAX_COUNTED = 2_000
"""Rows, twenty pages: to count all would take longer than any page may. Who wants one
further back searches for it."""


class BoundedPaginator(_Paginator):
    """Pages through the first rows of a table that may have millions."""

    @cached_property
    def count(self) -> int:
        rows = self.object_list
        assert isinstance(rows, QuerySet)
        return rows.order_by().values("pk")[:MAX_COUNTED].count()


class ReadOnly:
    """What staff may look at, and nothing else."""

    show_full_result_count = False
    paginator: Any = BoundedPaginator

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
