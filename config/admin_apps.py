"""Which site the admin is."""

from django.contrib.admin.apps import AdminConfig


class OurAdminConfig(AdminConfig):
    """The admin."""

    default_site = "config.admin_site.Site"


class VerifiedAdminConfig(AdminConfig):
    """Lets nobody in who has not shown a one-time password at his log-in."""

    default_site = "config.verified_site.VerifiedSite"
