"""The admin site that requires a second factor."""

from django_otp.admin import OTPAdminSite

from config.admin_site import Site


class VerifiedSite(Site, OTPAdminSite):  # type: ignore[misc]
    """Admits only staff who have logged in with a one-time password."""
