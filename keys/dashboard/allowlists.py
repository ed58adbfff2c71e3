"""The page of a key's allowlists: one form for all lists."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from http import HTTPStatus

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from keys.accounts.acting import actor_of
from keys.allowlists import MAX_ENTRIES
from keys.dashboard.access import dashboard_page, own_key
from keys.models import AllowlistKind, ApiKey
from keys.served_methods import ServedMethod, served_methods
from keys.services import set_allowlists

MAX_LINES = 10 * MAX_ENTRIES
"""Longer lists are not parsed. They are rejected, and stay in the form."""

_WORDS = {
    AllowlistKind.ORIGIN: (
        "Origins",
        "Web pages that can use the key: https://dapp.example, *.dapp.example (subdomains), "
        "localhost:* (any port). One per line.",
    ),
    AllowlistKind.USER_AGENT: (
        "User agents",
        "The User-Agent header has to contain one of these texts. Case is ignored. One per "
        "line.",
    ),
    AllowlistKind.IP: (
        "IP addresses",
        "IP addresses or networks of your servers: 192.0.2.7, 2001:db8::/32. One per line.",
    ),
    AllowlistKind.METHOD: ("Methods", "The JSON-RPC methods that can be called."),
    AllowlistKind.CONTRACT: (
        "Contract addresses",
        "Contracts that can be read and called, and whose logs and traces can be searched. "
        "Calls with another address among their parameters are rejected. One per line.",
    ),
}

_SEPARATORS = {
    AllowlistKind.ORIGIN: r"[\r\n,;]+",
    AllowlistKind.USER_AGENT: r"[\r\n]+",
    AllowlistKind.IP: r"[\s,;]+",
    AllowlistKind.METHOD: r"[\s,;]+",
    AllowlistKind.CONTRACT: r"[\s,;]+",
}


@dataclass(slots=True)
class List:
    """One allowlist in the form.

    text: the entries as typed; for methods the names typed beside the selected ones.
    shown: the entries when the page was opened, one a line. A list that the user did
        not change is not written, because it may have been changed in another window.
    faults: error messages.
    """

    kind: AllowlistKind
    title: str
    meaning: str
    text: str
    shown: str
    methods: MethodChoices | None = None
    faults: list[str] = field(default_factory=list)

    @property
    def values(self) -> list[str]:
        """The selected and the typed entries."""
        chosen = [] if self.methods is None else self.methods.chosen
        typed = re.split(_SEPARATORS[self.kind], self.text)
        return [*chosen, *filter(None, map(str.strip, typed))]

    @property
    def is_changed(self) -> bool:
        """Whether the entries differ from those of the opened page."""
        return sorted(self.values) != sorted(self.shown.splitlines())

    @property
    def rows(self) -> int:
        """Height of the text field."""
        return min(12, max(2, self.text.count("\n") + 2))


@dashboard_page
@require_http_methods(["GET", "HEAD", "POST"])
def allowlists(request: HttpRequest, pk: int) -> HttpResponse:
    """Show a key's allowlists. A POST replaces all that were changed, or none of them.

    A POST with `find` only searches the methods, for browsers without scripts.
    """
    key = own_key(request, pk)
    if request.method != "POST":
        return _show(request, key, _stored(key))
    lists = _sent(key, request.POST)
    if "find" in request.POST:
        return _show(request, key, lists)
    changed = [one for one in lists if one.is_changed]
    for one in changed:
        if len(one.values) > MAX_LINES:
            one.faults = [
                f"{len(one.values)} entries are too many: a list has at most "
                f"{MAX_ENTRIES}."
            ]
    if any(one.faults for one in changed):
        return _show(request, key, lists, HTTPStatus.BAD_REQUEST)
    try:
        set_allowlists(
            api_key=key,
            lists={one.kind: one.values for one in changed},
            actor=actor_of(request),
        )
    except ValidationError as error:
        if not hasattr(error, "error_dict"):
            raise
        for one in changed:
            one.faults = error.message_dict.get(one.kind, [])
        return _show(request, key, lists, HTTPStatus.BAD_REQUEST)
    messages.success(request, _report(changed))
    return redirect("dashboard:allowlists", pk)


def _show(
    request: HttpRequest,
    key: ApiKey,
    lists: list[List],
    status: HTTPStatus = HTTPStatus.OK,
) -> HttpResponse:
    context = {
        "key": key,
        "lists": lists,
        "faulty": [one for one in lists if one.faults],
        "max_entries": MAX_ENTRIES,
    }
    return render(request, "dashboard/allowlists.html", context, status=status)


def _stored(key: ApiKey) -> list[List]:
    lists = []
    for kind, entries in _entries(key).items():
        text = "\n".join(entries)
        one = List(kind, *_WORDS[kind], text=text, shown=text)
        if kind is AllowlistKind.METHOD:
            one.text, one.methods = "", method_choices(entries)
        lists.append(one)
    return lists


def _sent(key: ApiKey, sent: QueryDict) -> list[List]:
    lists = []
    for kind, entries in _entries(key).items():
        shown = sent.get(f"shown-{kind}", "\n".join(entries))
        text = sent.get(f"typed-{kind}", "")
        one = List(kind, *_WORDS[kind], text=text, shown=shown)
        if kind is AllowlistKind.METHOD:
            chosen = sent.getlist("method")
            one.methods = method_choices(chosen, sent.get("search", ""))
        lists.append(one)
    return lists


def _entries(key: ApiKey) -> dict[AllowlistKind, list[str]]:
    found: dict[AllowlistKind, list[str]] = {kind: [] for kind in AllowlistKind}
    for entry in key.allowlist.all():
        found[AllowlistKind(entry.kind)].append(entry.value)
    return found


def _report(changed: list[List]) -> str:
    """Return a message about the lists that were saved."""
    if not changed:
        return "No changes."
    parts = []
    for one in changed:
        count = len(set(one.values))
        size = "1 entry" if count == 1 else f"{count} entries"
        parts.append(f"{one.title}: {size if count else 'empty, all allowed'}.")
    return f"Saved. {' '.join(parts)}"


@dataclass(frozen=True, slots=True)
class MethodChoice:
    """A method in the form. is_served: False for a name that is only on the list."""

    name: str
    summary: str
    is_chosen: bool
    is_served: bool = True


@dataclass(frozen=True, slots=True)
class MethodChoices:
    """The methods in the form: the chosen ones first, then those that were searched.

    search: the searched text; "" shows all methods.
    """

    search: str
    choices: list[MethodChoice]

    @property
    def chosen(self) -> list[str]:
        """The names of the chosen methods."""
        return [one.name for one in self.choices if one.is_chosen]


def method_choices(chosen: Iterable[str], search: str = "") -> MethodChoices:
    """Return the choices of a form. chosen: names, which need not be served."""
    served = served_methods()
    names = list(dict.fromkeys(chosen))
    choices = [
        MethodChoice(name, served[name].summary, True)
        if name in served
        else MethodChoice(name, "", True, is_served=False)
        for name in names
    ]
    choices += [
        MethodChoice(method.name, method.summary, False)
        for method in served.values()
        if method.name not in names and _matches(method, search)
    ]
    return MethodChoices(search, choices)


def _matches(method: ServedMethod, search: str) -> bool:
    """Return whether a method contains every searched word, in any case."""
    text = f"{method.name} {method.summary}".lower()
    return all(word in text for word in search.lower().split())
