"""Networks and plans that a key can be given."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from keys.api.api_keys import LOOK
from keys.api.filters import read_filters
from keys.api.forms import PlanForm
from keys.api.serializers import NetworkDocument, PlanDocument
from keys.api.views import ManagementView, Need
from keys.models import Plan, Scope
from keys.services.limits import set_plan
from networks.models import Network


class NetworksView(ManagementView):
    """Lists networks."""

    needs = {"GET": LOOK}

    @extend_schema(responses=NetworkDocument(many=True))
    def get(self, request: Request) -> Response:
        """List networks, and the tracers that each offers."""
        read_filters(request, {})
        return self.paged(Network.objects.all(), NetworkDocument, ordering="id")


class PlansView(ManagementView):
    """Lists plans."""

    needs = {"GET": LOOK}

    @extend_schema(responses=PlanDocument(many=True))
    def get(self, request: Request) -> Response:
        """List plans."""
        read_filters(request, {})
        return self.paged(Plan.objects.all(), PlanDocument, ordering="id")


class PlanView(ManagementView):
    """Creates a plan or replaces its limits."""

    needs = {"PUT": Need(Scope.LIMITS_WRITE, "keys.change_plan")}

    @extend_schema(request=PlanForm, responses={200: PlanDocument, 201: PlanDocument})
    def put(self, request: Request, slug: str) -> Response:
        """Replace the limits of a plan, or create the plan if it does not exist (201).

        The new limits apply to the plan's keys at once.
        """
        form = PlanForm(data=request.data)
        form.is_valid(raise_exception=True)
        plan, is_new = set_plan(slug=slug, **form.validated_data)
        return Response(PlanDocument(plan).data, 201 if is_new else 200)
