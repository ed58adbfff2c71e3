"""Paths of the management API that its OpenAPI document describes."""

from __future__ import annotations

from django.urls import path

from keys.api.access_requests import (
    AccessRequestsView,
    AccessRequestView,
    ApproveAccessView,
    DeclineAccessView,
)
from keys.api.api_keys import DisableKeyView, EnableKeyView, KeysView, KeyView
from keys.api.customers import CustomersView, CustomerView
from keys.api.events import EventsView
from keys.api.offers import NetworksView, PlansView, PlanView
from keys.api.terms import (
    AllowlistsView,
    AllowlistView,
    EntitlementsView,
    EntitlementView,
    LimitsView,
)
from keys.api.usage import UsageView
from keys.api.versions import RevokeVersionView, RollKeyView, VersionsView

operations = [
    path("customers", CustomersView.as_view()),
    path("customers/<int:customer>", CustomerView.as_view()),
    path("keys", KeysView.as_view()),
    path("keys/<int:key>", KeyView.as_view()),
    path("keys/<int:key>/disable", DisableKeyView.as_view()),
    path("keys/<int:key>/enable", EnableKeyView.as_view()),
    path("keys/<int:key>/roll", RollKeyView.as_view()),
    path("keys/<int:key>/versions", VersionsView.as_view()),
    path("keys/<int:key>/versions/<int:version>/revoke", RevokeVersionView.as_view()),
    path("keys/<int:key>/entitlements", EntitlementsView.as_view()),
    path("keys/<int:key>/entitlements/<slug:network>", EntitlementView.as_view()),
    path("keys/<int:key>/allowlists", AllowlistsView.as_view()),
    path("keys/<int:key>/allowlists/<slug:kind>", AllowlistView.as_view()),
    path("keys/<int:key>/limits", LimitsView.as_view()),
    path("access-requests", AccessRequestsView.as_view()),
    path("access-requests/<int:number>", AccessRequestView.as_view()),
    path("access-requests/<int:number>/approve", ApproveAccessView.as_view()),
    path("access-requests/<int:number>/decline", DeclineAccessView.as_view()),
    path("usage", UsageView.as_view()),
    path("events", EventsView.as_view()),
    path("networks", NetworksView.as_view()),
    path("plans", PlansView.as_view()),
    path("plans/<slug:slug>", PlanView.as_view()),
]
"""URL patterns relative to `/api/v1/`."""
