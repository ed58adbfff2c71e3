"""Mail to users."""

from __future__ import annotations

from email.utils import parseaddr
from typing import Any

from django.conf import settings
from django.core.mail import EmailMessage, send_mail
from django.template.loader import render_to_string


def send_text(email: str, subject: str, template: str, context: dict[str, Any]) -> None:
    """Send a plain-text mail that is rendered from a template.

    Raises: OSError (such as SMTPException) if the mail server does not accept the email.
    """
    send_mail(
        subject=subject,
        message=render_to_string(template, context),
        from_email=None,  # DEFAULT_FROM_EMAIL
        recipient_list=[email],
    )


def send_once(email: str, subject: str, text: str, *, name: str) -> None:
    """Send a plain-text mail with a Message-ID of its own.

    name: the same for repetitions of the email, which mail servers can then discard.

    Raises: OSError if the mail server does not accept the email.
    """
    host = parseaddr(settings.DEFAULT_FROM_EMAIL)[1].rpartition("@")[2]
    headers = {"Message-ID": f"<{name}@{host}>"}
    EmailMessage(subject, text, None, [email], headers=headers).send()
