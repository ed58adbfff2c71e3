"""URLs of the management API, below `/api/v1/`."""

from __future__ import annotations

from django.urls import path

from keys.api.documentation import UnknownPathView, openapi
from keys.api.operations import operations

app_name = "api"

urlpatterns = [
    *operations,
    path("openapi.json", openapi, name="openapi"),
    path("<path:rest>", UnknownPathView.as_view()),
]
