"""Emails that users of the tests have received."""

from __future__ import annotations

import re

from django.core import mail

PASSWORD = "correct horse battery"


def the_mail(number: int = -1) -> str:
    """Return the text of a mail that was sent, the last one by default."""
    return str(mail.outbox[number].body)


def link_in(text: str) -> str:
    """Return the path of the one link in a mail."""
    (link,) = re.findall(r"http://127\.0\.0\.1:8000(/\S+)", text)
    return str(link)
