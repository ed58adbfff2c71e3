"""The page of an address."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from explorer.access import admitted, login_unless_public
from explorer.accounts import Cursor, find_account, parse_cursor, transactions
from explorer.responses import private
from keys.policy import with_own_scripts


@with_own_scripts
@private
@require_safe
@login_unless_public
def address(request: HttpRequest, slug: str, account: bytes) -> HttpResponse:
    """Show an account after the head block, and its newest transactions.

    `?before=NUMBER-INDEX` shows the transactions before that one.
    """
    network, _ = admitted(request, slug)
    before = _before(request)
    context = {
        "network": network,
        "account": find_account(network, account),
        "page": transactions(network, account, before),
        "is_newest": before is None,
    }
    return render(request, "explore/address.html", context)


def _before(request: HttpRequest) -> Cursor | None:
    """Return the cursor in the query, None without one. Raises: Http404."""
    text = request.GET.get("before")
    if text is None:
        return None
    try:
        return parse_cursor(text)
    except ValueError:
        raise Http404 from None
