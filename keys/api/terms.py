"""A key's entitlements, allowlists and limits."""

from __future__ import annotations

from django.db.models import QuerySet
from django.http import Http404
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from keys.api.api_keys import CHANGE, LOOK, find_key
from keys.api.filters import read_filters
from keys.api.forms import AllowlistForm, EntitlementForm, LimitsForm
from keys.api.serializers import (
    AllowlistsDocument,
    EntitlementDocument,
    LimitsDocument,
)
from keys.api.views import ManagementView, Need
from keys.models import AllowlistKind, Capability, Entitlement, Scope
from keys.services import grant_entitlement, set_allowlist, withdraw_entitlement
from keys.services.limits import set_limits
from networks.models import Network

GRANT = Need(Scope.ENTITLEMENTS_WRITE, "keys.grant_entitlement")


def entitlements_of(key: int) -> QuerySet[Entitlement]:
    """Return a key's entitlements. Raises: Http404 if there is no such key."""
    granted = Entitlement.objects.filter(api_key=find_key(key))
    return granted.select_related("network", "granted_by", "api_key")


class EntitlementsView(ManagementView):
    """Lists the entitlements of a key."""

    needs = {"GET": LOOK}

    @extend_schema(responses=EntitlementDocument(many=True))
    def get(self, request: Request, key: int) -> Response:
        """List the entitlements of a key, including expired ones."""
        read_filters(request, {})
        return self.paged(entitlements_of(key), EntitlementDocument)


class EntitlementView(ManagementView):
    """Grants and withdraws a key's entitlement to tracing on one network."""

    needs = {"PUT": GRANT, "DELETE": GRANT}

    @extend_schema(request=EntitlementForm, responses=EntitlementDocument)
    def put(self, request: Request, key: int, network: str) -> Response:
        """Grant a key tracing on a network. These terms replace earlier ones."""
        found = find_key(key)
        place = get_object_or_404(Network, slug=network)
        form = EntitlementForm(data=request.data)
        form.is_valid(raise_exception=True)
        granted = grant_entitlement(
            api_key=found, network=place, actor=self.actor(), **form.validated_data
        )
        return Response(EntitlementDocument(granted).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, key: int, network: str) -> Response:
        """Withdraw a key's entitlement to tracing on a network."""
        granted = get_object_or_404(
            entitlements_of(key), network__slug=network, capability=Capability.TRACE
        )
        withdraw_entitlement(entitlement=granted, actor=self.actor())
        return Response(status=204)


class AllowlistsView(ManagementView):
    """Returns the allowlists of a key."""

    needs = {"GET": LOOK}

    @extend_schema(responses=AllowlistsDocument)
    def get(self, request: Request, key: int) -> Response:
        """Return the allowlists of a key, by kind."""
        return Response(AllowlistsDocument(find_key(key)).data)


class AllowlistView(ManagementView):
    """Replaces a key's allowlist of one kind."""

    needs = {"PUT": CHANGE}

    @extend_schema(request=AllowlistForm, responses=AllowlistsDocument)
    def put(self, request: Request, key: int, kind: str) -> Response:
        """Replace the entries of one kind of allowlist.

        An empty list allows everything.
        """
        found = find_key(key)
        if kind not in AllowlistKind.values:
            raise Http404
        form = AllowlistForm(data=request.data)
        form.is_valid(raise_exception=True)
        set_allowlist(
            api_key=found, kind=kind, actor=self.actor(), **form.validated_data
        )
        return Response(AllowlistsDocument(find_key(key)).data)


class LimitsView(ManagementView):
    """Returns and sets a key's plan and limits."""

    needs = {
        "GET": LOOK,
        "PUT": Need(Scope.LIMITS_WRITE, "keys.change_keylimits"),
    }

    @extend_schema(responses=LimitsDocument)
    def get(self, request: Request, key: int) -> Response:
        """Return a key's own terms and the limits that apply."""
        return Response(LimitsDocument(find_key(key)).data)

    @extend_schema(request=LimitsForm, responses=LimitsDocument)
    def put(self, request: Request, key: int) -> Response:
        """Set a key's plan and its own terms, which replace earlier ones."""
        found = find_key(key)
        form = LimitsForm(data=request.data)
        form.is_valid(raise_exception=True)
        set_limits(api_key=found, actor=self.actor(), **form.validated_data)
        return Response(LimitsDocument(found).data)
