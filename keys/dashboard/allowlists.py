"""The page of a key's allowlists."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from keys.actors import actor_of
from keys.allowlists import MAX_ENTRIES, MAX_LENGTH
from keys.dashboard.access import dashboard_page, own_key
from keys.models import AllowlistKind, ApiKey
from keys.services import set_allowlist

MAX_TEXT = 2 * MAX_ENTRIES * MAX_LENGTH
"""Most characters of a list in the form."""

_WORDS = {
    AllowlistKind.ORIGIN: (
        "Origins",
        "Pages that may call: https://dapp.example, *.dapp.example (subdomains), "
        "localhost:* (any port).",
    ),
    AllowlistKind.USER_AGENT: (
        "User agents",
        "A part of the User-Agent header, in any case.",
    ),
    AllowlistKind.IP: (
        "IP addresses",
        "Addresses or networks of clients: 192.0.2.7, 2001:db8::/32.",
    ),
    AllowlistKind.METHOD: ("Methods", "Their names: eth_getStorageAt."),
    AllowlistKind.CONTRACT: (
        "Contract addresses",
        "Asked of methods with an address among their parameters.",
    ),
}


@dataclass(slots=True)
class List:
    """One allowlist in the form.

    text: one entry a line. fault: the error message for `text`, or "".
    """

    kind: AllowlistKind
    title: str
    meaning: str
    text: str
    fault: str = ""


@dashboard_page
@require_http_methods(["GET", "HEAD", "POST"])
def allowlists(request: HttpRequest, pk: int) -> HttpResponse:
    """Show a key's allowlists. A POST replaces one of them."""
    key = own_key(request, pk)
    lists = _lists(key)
    if request.method != "POST":
        return _show(request, key, lists)
    changed = next((a for a in lists if a.kind == request.POST.get("kind")), None)
    if changed is None:
        raise Http404
    changed.text = request.POST.get("entries", "")[:MAX_TEXT]
    values = [line.strip() for line in changed.text.splitlines() if line.strip()]
    try:
        entries = set_allowlist(
            api_key=key, kind=changed.kind, values=values, actor=actor_of(request)
        )
    except ValidationError as error:
        changed.fault = " ".join(error.messages)
        return _show(request, key, lists, HTTPStatus.BAD_REQUEST)
    count = len(entries)
    what = (
        f"{count} of {MAX_ENTRIES} entries" if count else "empty, hence all is allowed"
    )
    messages.success(request, f"{changed.title}: {what}.")
    return redirect("dashboard:allowlists", pk)


def _show(
    request: HttpRequest,
    key: ApiKey,
    lists: list[List],
    status: HTTPStatus = HTTPStatus.OK,
) -> HttpResponse:
    context = {"key": key, "lists": lists, "max_entries": MAX_ENTRIES}
    return render(request, "dashboard/allowlists.html", context, status=status)


def _lists(key: ApiKey) -> list[List]:
    kept = list(key.allowlist.all())
    return [
        List(
            kind,
            *_WORDS[kind],
            text="\n".join(entry.value for entry in kept if entry.kind == kind),
        )
        for kind in AllowlistKind
    ]
