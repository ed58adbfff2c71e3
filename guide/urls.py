"""URLs of the documentation, below `/docs/`; `config.urls` adds the wallet's page and errors."""

from __future__ import annotations

from django.urls import path

from guide import views

pages = [
    path("", views.index, name="index"),
    path("authentication", views.authentication, name="authentication"),
    path("networks", views.networks, name="networks"),
    path("console", views.console, name="console"),
    path("limits", views.limits, name="limits"),
    path("rotation", views.rotation, name="rotation"),
    path("management", views.management, name="management"),
    path("changelog", views.changelog, name="changelog"),
]
