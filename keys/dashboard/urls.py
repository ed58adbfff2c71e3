"""Addresses of the dashboard, below `/dashboard/`."""

from __future__ import annotations

from django.urls import path

from keys.dashboard import api_keys

app_name = "dashboard"
urlpatterns = [
    path("", api_keys.index, name="keys"),
    path("keys/<int:pk>", api_keys.key, name="key"),
]
