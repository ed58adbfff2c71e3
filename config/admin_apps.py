"""App configurations of the admin, which select its site class."""

from django.contrib.admin.apps import AdminConfig


class OurAdminConfig(AdminConfig):
    """The admin without a second factor."""

    default_site = "config.admin_site.Site"


class VerifiedAdminConfig(AdminConfig):
    """The admin for staff who have logged in with a one-time password."""

    default_site = "config.verified_site.VerifiedSite"
