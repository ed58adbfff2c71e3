"""Lists of millions of rows in the admin.

A page's time does not depend on their number.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from django.contrib.admin import ShowFacets
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ChangeList
from django.contrib.admin.widgets import AutocompleteSelect
from django.core.paginator import InvalidPage, Paginator
from django.db.models import DateField, Model, QuerySet
from django.http import HttpRequest
from django.utils.functional import cached_property
from django.utils.html import format_html
from django.utils.safestring import SafeString

if TYPE_CHECKING:  # the class is generic for the type checker alone
    _Paginator = Paginator[Any]
else:
    _Paginator = Paginator

_ID = re.compile(r"[0-9]{1,18}")

MAX_ROWS = 2_000
"""Most rows that can be paged through. Older rows are found by a search."""

PAGES_AHEAD = 3
"""Number of pages offered after the current one. Only rows up to there are counted."""


class LongChangeList(ChangeList):
    """The rows of a page, read by one query.

    Django's own change list counts all rows and then reads the page. A filter that few
    rows pass would then scan the table twice.

    is_more: whether there are rows beyond the counted ones.
    """

    is_more: bool

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # Django's template tag would compute the link back for each row.
        self._kept_filters, self.preserved_filters = self.preserved_filters, ""

    def url_for_result(self, result: Model) -> str:
        """Return the URL of a row's page, with a link back to this list."""
        address = super().url_for_result(result)
        return f"{address}?{self._kept_filters}" if self._kept_filters else address

    def get_results(self, request: HttpRequest) -> None:
        """Read the page. Raises: IncorrectLookupParameters if it does not exist."""
        pages = max(self.page_num, 1) + PAGES_AHEAD
        reach = min(pages * self.list_per_page, MAX_ROWS)
        found = list(self.queryset.values_list("pk", flat=True)[: reach + 1])
        counted = found[:reach]
        self.is_more = len(found) > reach
        self.paginator = Paginator(counted, self.list_per_page)
        self.result_count = len(counted)
        # Equal counts make the template omit the number of all rows.
        self.full_result_count = self.result_count if self.is_more else None
        self.show_full_result_count = False
        self.show_admin_actions = True
        self.can_show_all = self.result_count <= self.list_max_show_all
        self.multi_page = self.result_count > self.list_per_page
        if self.multi_page and not (self.show_all and self.can_show_all):
            try:
                counted = list(self.paginator.page(self.page_num).object_list)
            except InvalidPage as error:
                raise IncorrectLookupParameters from error
        self.result_list = self._rows(counted)

    def _rows(self, keys: list[Any]) -> list[Model]:
        """Return the rows with some primary keys, in their order."""
        rows = self.apply_select_related(self.root_queryset).order_by().in_bulk(keys)
        return [rows[key] for key in keys if key in rows]


class BoundedPaginator(_Paginator):
    """Paginator for the results of an autocomplete field."""

    @cached_property
    def count(self) -> int:
        """The number of rows, up to MAX_ROWS."""
        rows = self.object_list
        assert isinstance(rows, QuerySet)
        return rows.order_by().values("pk")[:MAX_ROWS].count()


class _Selector(AutocompleteSelect):
    """A selection field that ignores a selected value that is no id."""

    def optgroups(self, name: str, value: Sequence[str], attr: Any = None) -> Any:
        """Return the selected options."""
        ids = [one for one in map(str, value) if _ID.fullmatch(one)]
        return super().optgroups(name, ids, attr)


class LongList:
    """An admin of a table that may have millions of rows."""

    show_full_result_count = False
    paginator: Any = BoundedPaginator
    show_facets = ShowFacets.NEVER  # each of them would count all rows

    def formfield_for_foreignkey(
        self, db_field: Any, request: HttpRequest, **kwargs: Any
    ) -> Any:
        """Return the field of a foreign key."""
        options: Any = self
        if db_field.name in options.get_autocomplete_fields(request):
            kwargs.setdefault("widget", _Selector(db_field, options.admin_site))
        parent: Any = super()
        return parent.formfield_for_foreignkey(db_field, request, **kwargs)

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """Return the values in a link to a form, without dates: Django parses none."""
        options: Any = self
        parent: Any = super()
        dates = {one.name for one in options.opts.fields if isinstance(one, DateField)}
        found = parent.get_changeform_initial_data(request)
        return {name: value for name, value in found.items() if name not in dates}

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        """Return the class of the list."""
        return LongChangeList

    def action_checkbox(self, obj: Model) -> SafeString:
        """Return a row's checkbox, without rendering a template for each row."""
        return format_html(
            '<input type="checkbox" name="{}" value="{}" class="action-select"'
            ' aria-label="Select this object for an action - {}">',
            ACTION_CHECKBOX_NAME,
            obj.pk,
            obj,
        )


class ReadOnly(LongList):
    """An admin that shows objects and can't change them."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
