"""Pages that show a key's access to tracing and let customers request more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import (
    require_http_methods,
    require_POST,
    require_safe,
)

from keys.accounts.acting import actor_of
from keys.dashboard.access import dashboard_page, opened_networks, own_key
from keys.models import (
    AccessRequest,
    AccessStatus,
    ApiKey,
    Capability,
    Entitlement,
    Role,
)
from keys.services import request_access, withdraw_request
from networks.models import Network, Tracer

REQUESTS = 20
"""Requests on a page."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A network's tracers, and the key's entitlement to them.

    tracers: each tracer with whether the key may use it now.
    granted: the entitlement, or None.
    pending: a request that staff have not decided yet.
    """

    network: Network
    tracers: list[tuple[str, bool]]
    granted: Entitlement | None
    is_over: bool
    pending: AccessRequest | None

    @property
    def has_all(self) -> bool:
        """Whether the key has access to all tracers already."""
        return all(may for _, may in self.tracers)


class AccessForm(forms.Form):
    """A request for tracers, with a reason.

    network: the network of the tracers.
    """

    tracers = forms.MultipleChoiceField(
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": "Select at least one tracer."},
    )
    reason = forms.CharField(
        label="What do you need tracing for?",
        max_length=1000,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text="Support decides on the request. You get an email with the decision.",
    )

    def __init__(self, network: Network, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        names = dict(Tracer.choices)
        tracers = self.fields["tracers"]
        assert isinstance(tracers, forms.MultipleChoiceField)
        tracers.choices = [(name, names.get(name, name)) for name in network.tracers]


@dashboard_page
@require_safe
def tracing(request: HttpRequest, pk: int) -> HttpResponse:
    """Show the key's entitlements and requests on each network."""
    key = own_key(request, pk)
    asked = key.access_requests.select_related("network")
    page = Paginator(asked, REQUESTS).get_page(request.GET.get("page"))
    context = {"key": key, "offers": _offers(key), "page": page}
    return render(request, "dashboard/tracing.html", context)


@dashboard_page(to_look=Role.DEVELOPER)
@require_http_methods(["GET", "HEAD", "POST"])
def ask(request: HttpRequest, pk: int, slug: str) -> HttpResponse:
    """Request access to tracing on a network."""
    key = own_key(request, pk)
    offer = next((one for one in _offers(key) if one.network.slug == slug), None)
    if offer is None:
        raise Http404
    lacking = [name for name, may in offer.tracers if not may]
    posted = request.POST if request.method == "POST" else None
    form = AccessForm(offer.network, posted, initial={"tracers": lacking})
    if form.is_valid():
        try:
            request_access(
                api_key=key,
                network=offer.network,
                tracers=form.cleaned_data["tracers"],
                reason=form.cleaned_data["reason"],
                actor=actor_of(request),
            )
        except ValidationError as error:
            form.add_error(None, error.messages)
        else:
            messages.success(
                request, "The request is sent. You will get an email with the decision."
            )
            return redirect("dashboard:tracing", pk)
    context = {"key": key, "offer": offer, "form": form}
    return render(request, "dashboard/ask.html", context)


@dashboard_page
@require_POST
def withdraw(request: HttpRequest, pk: int, request_pk: int) -> HttpResponse:
    """Withdraw a request."""
    key = own_key(request, pk)
    asked = get_object_or_404(AccessRequest, api_key=key, pk=request_pk)
    try:
        withdraw_request(request=asked, actor=actor_of(request))
    except ValidationError as error:
        messages.error(request, " ".join(error.messages))
    else:
        messages.success(request, "The request is withdrawn.")
    return redirect("dashboard:tracing", pk)


def _offers(key: ApiKey) -> list[Offer]:
    live = set(key.entitlements.live().values_list("pk", flat=True))
    granted = {
        one.network_id: one
        for one in key.entitlements.filter(capability=Capability.TRACE)
    }
    pending = {
        one.network_id: one
        for one in key.access_requests.filter(status=AccessStatus.PENDING)
    }
    return [
        _offer(network, granted.get(network.pk), live, pending.get(network.pk))
        for network in opened_networks(key)
    ]


def _offer(
    network: Network,
    granted: Entitlement | None,
    live: set[int],
    pending: AccessRequest | None,
) -> Offer:
    is_over = granted is not None and granted.pk not in live
    may: set[str] = set()
    if granted is not None and not is_over:
        may = set(granted.tracers or network.tracers)
    tracers = [(name, name in may) for name in network.tracers]
    return Offer(network, tracers, granted, is_over, pending)
