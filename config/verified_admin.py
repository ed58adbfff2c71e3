"""The admin where staff need a second factor."""

from django.contrib.admin.apps import AdminConfig


class VerifiedAdminConfig(AdminConfig):
    """Lets nobody in who has not shown a one-time password at his log-in."""

    default_site = "django_otp.admin.OTPAdminSite"
