"""The admin's site where staff need a second factor."""

from django_otp.admin import OTPAdminSite

from config.admin_site import Site


class VerifiedSite(Site, OTPAdminSite):  # type: ignore[misc]
    """Lets nobody in who has not shown a one-time password at his log-in."""
