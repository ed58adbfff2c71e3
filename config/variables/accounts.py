"""Accounts and email."""

from __future__ import annotations

from config.env import Group, boolean, size
from config.setting_types import mail_address, sender

ACCOUNTS = Group("Accounts and email")

KEYS_SIGNUP = ACCOUNTS.variable(
    "KEYS_SIGNUP",
    boolean,
    True,
    "Whether anyone can sign up. Otherwise staff create the accounts.",
)

KEYS_PER_CUSTOMER = ACCOUNTS.variable(
    "KEYS_PER_CUSTOMER",
    size,
    5,
    "Number of API keys that customers can create themselves. Keys issued by staff do not"
    " count. Each key has all limits of its plan. 0: staff create all keys.",
)

MAIL_URL = ACCOUNTS.variable(
    "MAIL_URL",
    mail_address,
    "",
    "Mail server: `smtps://user:password@host`, `smtp+starttls://…` or `smtp://…`,"
    " with percent-encoded parts.",
    "emails are printed to the console",
)

MAIL_FROM = ACCOUNTS.variable(
    "MAIL_FROM", sender, "portcullis@localhost", "Sender of all emails."
)
