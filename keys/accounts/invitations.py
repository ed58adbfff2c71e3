"""The page of an invitation's link, on which a person joins a customer account.

Only the recipient of the email knows the link. A user logs in first. A new person chooses
a password, by which their own account is created too.
"""

from __future__ import annotations

from http import HTTPStatus

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from keys.accounts.acting import SESSION_KEY
from keys.accounts.forms import NewPasswordForm
from keys.accounts.mails import mail_joined
from keys.accounts.pages import account_page, ip_of, logger
from keys.models import Invitation, Membership, User
from keys.services import (
    Actor,
    InvitationUseless,
    accept_invitation,
    find_invitation,
)


@account_page
@sensitive_post_parameters()
@require_http_methods(["GET", "HEAD", "POST"])
def invitation(request: HttpRequest, token: str) -> HttpResponse:
    """Show an invitation. A POST accepts it."""
    try:
        found = find_invitation(token)
        if isinstance(request.user, User):
            return _for_user(request, token, found, request.user)
        if User.objects.filter(email=found.email).exists():
            return _page(request, found, "known")
        if not settings.KEYS_SIGNUP:
            return _page(request, found, "closed")
        return _for_new_person(request, token, found)
    except InvitationUseless:
        status = HTTPStatus.GONE
        return render(request, "account/invitation_useless.html", status=status)


def _for_user(
    request: HttpRequest, token: str, found: Invitation, user: User
) -> HttpResponse:
    if User.objects.normalize_email(user.email) != found.email:
        return _page(request, found, "another")
    if request.method != "POST":
        return _page(request, found, "join")
    try:
        membership = accept_invitation(
            token=token, user=user, actor=Actor(user, ip_of(request))
        )
    except ValidationError as error:
        return _page(request, found, "join", faults=error.messages)
    return _joined(request, membership)


def _for_new_person(
    request: HttpRequest, token: str, found: Invitation
) -> HttpResponse:
    posted = request.POST if request.method == "POST" else None
    form = NewPasswordForm(User(email=found.email), posted)
    if not form.is_valid():
        return _page(request, found, "new", form=form)
    password = form.cleaned_data["new_password1"]
    membership = _sign_up(token, found.email, password, ip_of(request))
    login(request, membership.member)
    return _joined(request, membership)


@transaction.atomic
def _sign_up(token: str, email: str, password: str, ip: str | None) -> Membership:
    """Create the invited user and accept the invitation, or do neither.

    Raises: InvitationUseless, also if the user was created in the meantime.
    """
    try:
        with transaction.atomic():
            user = User.objects.create_user(email, password)
    except IntegrityError as error:
        raise InvitationUseless from error
    return accept_invitation(token=token, user=user, actor=Actor(user, ip))


def _joined(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Continue in the account. An error of the mail server is logged."""
    try:
        mail_joined(membership)
    except OSError as error:
        logger.error("an email could not be sent: %s", error)
    request.session[SESSION_KEY] = membership.account_id
    role = membership.get_role_display()
    account = membership.account
    messages.success(request, f"You have joined the account {account} as {role}.")
    return redirect("dashboard:keys")


def _page(
    request: HttpRequest, found: Invitation, state: str, **context: object
) -> HttpResponse:
    """Show the page.

    state: join (the invited user), another (another user), known (an invited user who
        is not logged in), closed (a new person while sign-up is closed), or new (a new
        person).
    """
    context = {"invitation": found, "state": state, **context}
    return render(request, "account/invitation.html", context)
