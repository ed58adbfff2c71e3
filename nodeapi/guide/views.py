"""The pages of the documentation, and the document that programs read."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from jsonrpc.text import dump
from nodeapi import openrpc as document
from nodeapi.guide.contents import PAGES, place_of
from nodeapi.guide.errors import error_entries
from nodeapi.methods import registry
from nodeapi.policy import without_scripts


def _show(request: HttpRequest, name: str, **facts: Any) -> HttpResponse:
    """Render a page, `templates/docs/<name>.html`, with the way around it."""
    context = {
        "pages": PAGES,
        "place": place_of(name),
        "base_url": request.build_absolute_uri("/").rstrip("/"),
        **facts,
    }
    return render(request, f"docs/{name}.html", context)


@without_scripts
@require_safe
def index(request: HttpRequest) -> HttpResponse:
    """Show the way to a first call."""
    return _show(request, "index")


@without_scripts
@require_safe
def authentication(request: HttpRequest) -> HttpResponse:
    """Show how a request says whose it is."""
    return _show(request, "authentication")


@without_scripts
@require_safe
def networks(request: HttpRequest) -> HttpResponse:
    """Show what can be asked where."""
    return _show(request, "networks")


@without_scripts
@require_safe
def console(request: HttpRequest) -> HttpResponse:
    """Show a form that makes calls."""
    return _show(request, "console")


@without_scripts
@require_safe
def limits(request: HttpRequest) -> HttpResponse:
    """Show what calls cost and what plans allow."""
    return _show(request, "limits")


@without_scripts
@require_safe
def errors(request: HttpRequest) -> HttpResponse:
    """Show every error that the API answers with; `data.see` points here."""
    return _show(request, "errors", entries=error_entries())


@without_scripts
@require_safe
def rotation(request: HttpRequest) -> HttpResponse:
    """Show how a key's secret is replaced."""
    return _show(request, "rotation")


@without_scripts
@require_safe
def wallet(request: HttpRequest) -> HttpResponse:
    """Show what a dapp and the wallet say to each other."""
    return _show(request, "wallet")


@without_scripts
@require_safe
def management(request: HttpRequest) -> HttpResponse:
    """Show the management API."""
    return _show(request, "management")


@without_scripts
@require_safe
def changelog(request: HttpRequest) -> HttpResponse:
    """Show what has changed."""
    return _show(request, "changelog")


@require_safe
def openrpc(request: HttpRequest) -> HttpResponse:
    """Answer with what `rpc.discover` answers with, to anybody."""
    response = HttpResponse(dump(document.document(registry)), "application/json")
    response["Access-Control-Allow-Origin"] = "*"
    return response
