"""Functions shared by the account pages."""

from __future__ import annotations

import logging
from collections.abc import Callable
from http import HTTPStatus

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.cache import cache_control

from keys.accounts.forms import EmailForm
from keys.accounts.outgoing import TooManyMails
from keys.policy import without_scripts

logger = logging.getLogger(__name__)

_View = Callable[..., HttpResponseBase]


def account_page(view: _View) -> _View:
    """Forbid caching, framing and scripts for a view's pages."""
    return without_scripts(cache_control(private=True, no_store=True)(view))


def ip_of(request: HttpRequest) -> str | None:
    """Return the client's IP address, or None."""
    return request.META.get("REMOTE_ADDR") or None


def mail_form(
    request: HttpRequest,
    form: EmailForm,
    send: Callable[[str, str | None], None],
    template: str,
) -> HttpResponse:
    """Show a form with an email address, and send an email to the submitted address.

    send: sends exactly one email, with or without an account, so that neither the
        response nor its duration reveals which addresses have accounts.
    """
    status = HTTPStatus.OK
    if form.is_valid():
        try:
            send(form.cleaned_data["email"], ip_of(request))
        except TooManyMails:
            status = HTTPStatus.TOO_MANY_REQUESTS
            form.add_error(
                None, "Too many emails were requested. Try again in an hour."
            )
        except OSError as error:
            logger.error("an email could not be sent: %s", error)
            status = HTTPStatus.SERVICE_UNAVAILABLE
            form.add_error(None, "Email can't be sent at the moment. Try again later.")
        else:
            return redirect("mail_sent")
    return render(request, template, {"form": form}, status=status)
