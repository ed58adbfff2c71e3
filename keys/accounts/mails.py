"""Emails about accounts. Each request of a visitor sends exactly one email."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.tokens import default_token_generator
from django.urls import reverse
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode

from keys.accounts.links import make_token
from keys.accounts.outgoing import note_mail
from keys.mail import send_text
from keys.models import Membership, User
from keys.services import IssuedInvitation
from keys.site import mailed_url


def mail_signup(email: str, ip: str | None) -> None:
    """Send a link to sign up, or the information that the account exists already.

    Raises: TooManyMails; OSError if the mail server does not accept the email.
    """
    mail = note_mail(email, ip)
    if User.objects.filter(email=email).exists():
        link = mailed_url(reverse("password_reset"))
        context = {"login": mailed_url(reverse("login")), "reset": link}
        send_text(
            email, "You already have an account", "account/mail/known.txt", context
        )
        return
    link = mailed_url(reverse("signup_confirm", args=[make_token(mail)]))
    context = {"link": link, "ip": ip or ""}
    send_text(email, "Confirm your email address", "account/mail/signup.txt", context)


def mail_reset(email: str, ip: str | None) -> None:
    """Send a link to set a new password, or the information that there is no account.

    Raises: TooManyMails; OSError if the mail server does not accept the email.
    """
    note_mail(email, ip)
    user = User.objects.filter(email=email, is_active=True).first()
    if user is None:
        signup = mailed_url(reverse("signup")) if settings.KEYS_SIGNUP else ""
        context = {"signup": signup, "ip": ip or ""}
        send_text(
            email, "No account with this address", "account/mail/unknown.txt", context
        )
        return
    name = urlsafe_base64_encode(force_bytes(user.pk))
    token = default_token_generator.make_token(user)
    link = mailed_url(reverse("password_reset_confirm", args=[name, token]))
    context = {"link": link, "ip": ip or ""}
    send_text(email, "Choose a new password", "account/mail/reset.txt", context)


def mail_invitation(issued: IssuedInvitation) -> None:
    """Send the link with which a person becomes a member of an account.

    The mail is the same for addresses with and without an account.

    Raises: OSError if the mail server does not accept the email.
    """
    invitation = issued.invitation
    link = mailed_url(reverse("invitation", args=[issued.token]))
    context = {"invitation": invitation, "link": link}
    subject = "Invitation to an account at Portcullis"
    send_text(invitation.email, subject, "account/mail/invitation.txt", context)


def mail_joined(membership: Membership) -> None:
    """Notify the user of an account that an invited person has joined it.

    Raises: OSError if the mail server does not accept the email.
    """
    context = {
        "membership": membership,
        "members": mailed_url(reverse("dashboard:members")),
    }
    email = membership.account.email
    subject = "A new member has joined your account"
    send_text(email, subject, "account/mail/joined.txt", context)


def mail_password_changed(user: User, ip: str | None) -> None:
    """Notify a user of a password change, in case they did not make it.

    Raises: OSError if the mail server does not accept the email.
    """
    context = {"reset": mailed_url(reverse("password_reset")), "ip": ip or ""}
    send_text(
        user.email, "Your password was changed", "account/mail/changed.txt", context
    )
