"""Mail to customers."""

from __future__ import annotations

from typing import Any

from django.core.mail import send_mail
from django.template.loader import render_to_string

from keys.models import AccessRequest, AccessStatus


def send_text(email: str, subject: str, template: str, context: dict[str, Any]) -> None:
    """Send a plain-text mail that is rendered from a template.

    Raises: OSError (such as SMTPException) if the mail server does not accept the mail.
    """
    send_mail(
        subject=subject,
        message=render_to_string(template, context),
        from_email=None,  # DEFAULT_FROM_EMAIL
        recipient_list=[email],
    )


def mail_decision(request: AccessRequest) -> None:
    """Notify the owner of a key of the decision on a request for access."""
    is_approved = request.status == AccessStatus.APPROVED
    send_text(
        request.api_key.owner.email,
        f"Tracing on {request.network}: {request.status}",
        "keys/mail/access_decided.txt",
        {"request": request, "is_approved": is_approved},
    )
