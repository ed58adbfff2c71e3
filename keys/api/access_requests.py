"""Customers' requests for access to tracing."""

from __future__ import annotations

from collections.abc import Callable

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from keys.api.filters import one_of, read_filters, whole, words
from keys.api.forms import ApprovalForm, DeclineForm
from keys.api.serializers import AccessRequestDocument
from keys.api.terms import GRANT
from keys.api.views import ManagementView, Need
from keys.models import AccessRequest, AccessStatus, Scope
from keys.services import approve_access, decline_access

_LOOK = Need(Scope.KEYS_READ, "keys.view_accessrequest")


def access_requests() -> QuerySet[AccessRequest]:
    """Return all requests for access, with the related rows that the API shows."""
    return AccessRequest.objects.select_related(
        "api_key__owner", "network", "requested_by", "decided_by"
    )


class AccessRequestsView(ManagementView):
    """Lists pending and decided requests."""

    needs = {"GET": _LOOK}
    filters = {
        "status": one_of("status", list(AccessStatus.values), "State of the request."),
        "key": whole("api_key", "Id of a key."),
        "network": words("network__slug", "Slug of a network."),
    }

    @extend_schema(responses=AccessRequestDocument(many=True))
    def get(self, request: Request) -> Response:
        """List requests for access, the newest first."""
        found = access_requests().filter(**read_filters(request, self.filters))
        return self.paged(found, AccessRequestDocument)


class AccessRequestView(ManagementView):
    """Returns one request for access."""

    needs = {"GET": _LOOK}

    @extend_schema(responses=AccessRequestDocument)
    def get(self, request: Request, number: int) -> Response:
        """Return a request for access."""
        found = get_object_or_404(access_requests(), pk=number)
        return Response(AccessRequestDocument(found).data)


class _DecisionView(ManagementView):
    """Base class: decides a request and sends an email to the customer."""

    needs = {"POST": GRANT}

    def decide(
        self,
        request: Request,
        number: int,
        form_class: type[DeclineForm | ApprovalForm],
        decision: Callable[..., AccessRequest],
    ) -> Response:
        """Validate the form, decide the request and return its new state."""
        found = get_object_or_404(access_requests(), pk=number)
        form = form_class(data=request.data)
        form.is_valid(raise_exception=True)
        decided = decision(request=found, actor=self.actor(), **form.validated_data)
        return Response(AccessRequestDocument(decided).data)


class ApproveAccessView(_DecisionView):
    """Approves a request for access."""

    @extend_schema(request=ApprovalForm, responses=AccessRequestDocument)
    def post(self, request: Request, number: int) -> Response:
        """Grant the requested access, or a part of it. The customer gets an email."""
        return self.decide(request, number, ApprovalForm, approve_access)


class DeclineAccessView(_DecisionView):
    """Declines a request for access."""

    @extend_schema(request=DeclineForm, responses=AccessRequestDocument)
    def post(self, request: Request, number: int) -> Response:
        """Decline a request. The customer gets an email with the message."""
        return self.decide(request, number, DeclineForm, decline_access)
