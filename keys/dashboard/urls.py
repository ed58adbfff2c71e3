"""URLs of the dashboard, below `/dashboard/`."""

from __future__ import annotations

from django.urls import path

from keys.dashboard import (
    activity,
    allowlists,
    api_keys,
    connect,
    secrets,
    tracing,
    usage,
)

app_name = "dashboard"
urlpatterns = [
    path("", api_keys.index, name="keys"),
    path("keys/new", api_keys.create, name="create"),
    path("keys/<int:pk>", api_keys.key, name="key"),
    path("keys/<int:pk>/rename", api_keys.rename, name="rename"),
    path("keys/<int:pk>/disable", api_keys.disable, name="disable"),
    path("keys/<int:pk>/enable", api_keys.enable, name="enable"),
    path("keys/<int:pk>/delete", api_keys.delete, name="delete"),
    path("keys/<int:pk>/reveal", secrets.reveal, name="reveal"),
    path("keys/<int:pk>/roll", secrets.roll, name="roll"),
    path("keys/<int:pk>/secrets/<int:version_pk>", secrets.revoke, name="revoke"),
    path("keys/<int:pk>/connect", connect.connect, name="connect"),
    path("keys/<int:pk>/allowlists", allowlists.allowlists, name="allowlists"),
    path("keys/<int:pk>/tracing", tracing.tracing, name="tracing"),
    path("keys/<int:pk>/tracing/<slug:slug>", tracing.ask, name="ask"),
    path(
        "keys/<int:pk>/tracing/requests/<int:request_pk>/withdraw",
        tracing.withdraw,
        name="withdraw",
    ),
    path("keys/<int:pk>/usage", usage.usage, name="usage"),
    path("keys/<int:pk>/usage.csv", usage.export, name="usage_csv"),
    path("keys/<int:pk>/activity", activity.activity, name="activity"),
    path("keys/<int:pk>/activity.csv", activity.activity_csv, name="activity_csv"),
]
