"""Mail to customers about their keys."""

from __future__ import annotations

from django.core.mail import send_mail
from django.template.loader import render_to_string

from keys.models import AccessRequest, AccessStatus


def mail_decision(request: AccessRequest) -> None:
    """Tell the owner of a key what became of a request for access."""
    is_approved = request.status == AccessStatus.APPROVED
    text = render_to_string(
        "keys/mail/access_decided.txt",
        {"request": request, "is_approved": is_approved},
    )
    send_mail(
        subject=f"Tracing on {request.network}: {request.status}",
        message=text,
        from_email=None,  # DEFAULT_FROM_EMAIL
        recipient_list=[request.api_key.owner.email],
    )
