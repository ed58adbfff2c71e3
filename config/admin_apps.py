"""App configurations of the admin, which select its site class."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.admin.apps import SimpleAdminConfig
from django.contrib.admin.checks import check_admin_app, check_dependencies
from django.core.checks import CheckMessage, Tags, register


class OurAdminConfig(SimpleAdminConfig):
    """The admin without a second factor.

    `config.urls` imports the `admin` modules of all apps, so that commands start without
    them.
    """

    default_site = "config.admin_site.Site"

    def ready(self) -> None:
        """Register the admin's checks."""
        register(check_dependencies, Tags.admin)
        register(_check_admins, Tags.admin)


class VerifiedAdminConfig(OurAdminConfig):
    """The admin for staff who have logged in with a one-time password."""

    default_site = "config.verified_site.VerifiedSite"


def _check_admins(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    admin.autodiscover()
    return check_admin_app(app_configs, **kwargs)
