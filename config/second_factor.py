"""The optional second factor for staff, with django-otp; see docs/keys.md."""

from __future__ import annotations

from importlib.util import find_spec

from config.env import InvalidSetting

APPS = ["django_otp", "django_otp.plugins.otp_totp", "django_otp.plugins.otp_static"]
MIDDLEWARE = "django_otp.middleware.OTPMiddleware"

_ADMIN = "config.admin_apps.OurAdminConfig"
_AUTHENTICATION = "django.contrib.auth.middleware.AuthenticationMiddleware"


def require_second_factor(apps: list[str], middleware: list[str]) -> None:
    """Change INSTALLED_APPS and MIDDLEWARE so that the admin requires a second factor.

    Raises: InvalidSetting if django-otp is not installed.
    """
    if find_spec("django_otp") is None:
        raise InvalidSetting(
            "STAFF_SECOND_FACTOR needs django-otp:"
            " pip install --requirement requirements-otp.txt"
        )
    apps[apps.index(_ADMIN)] = "config.admin_apps.VerifiedAdminConfig"
    apps.extend(APPS)
    # It needs the user, which AuthenticationMiddleware sets.
    middleware.insert(middleware.index(_AUTHENTICATION) + 1, MIDDLEWARE)
