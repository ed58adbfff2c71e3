"""The search of the explorer."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from explorer.access import admitted_networks, login_unless_public
from explorer.responses import private
from explorer.search import MAX_TEXT, Results, search
from keys.policy import with_own_scripts


@with_own_scripts
@private
@require_safe
@login_unless_public
def search_page(request: HttpRequest) -> HttpResponse:
    """Show what `?q=…` finds on the networks that the visitor may see.

    A single result redirects to its page, unless there may be more.
    """
    networks = admitted_networks(request)
    text = request.GET.get("q", "")[:MAX_TEXT].strip()
    results = search(networks, text) if text and networks else Results()
    if results.is_complete and len(results.found) == 1:
        return HttpResponseRedirect(results.found[0].path)
    if results.maybe_pending and len(networks) == 1:
        # The page of the transaction asks the network's upstreams.
        place = networks[0].slug, results.maybe_pending
        return HttpResponseRedirect(reverse("explore:transaction", args=place))
    context = {"text": text, "results": results, "networks": networks}
    return render(request, "explore/search.html", context)
