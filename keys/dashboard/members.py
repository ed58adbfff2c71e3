"""Pages on which the members of a customer account are shown, invited and changed."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from http import HTTPStatus

from django import forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import (
    require_http_methods,
    require_POST,
    require_safe,
)

from keys.accounts.acting import SESSION_KEY, Acting, acting_of, actor_of, user_of
from keys.accounts.forms import EmailForm
from keys.accounts.mails import mail_invitation
from keys.accounts.outgoing import TooManyMails, note_mail
from keys.dashboard.access import dashboard_page
from keys.models import Invitation, MemberEvent, Membership, Role
from keys.services import (
    change_role,
    invite,
    leave_account,
    remove_member,
    withdraw_invitation,
)

logger = logging.getLogger(__name__)

EVENTS = 20
"""Lines of the history on a page."""

MEANINGS = {
    Role.OWNER: "Can do everything that developers can, and invite and remove members.",
    Role.DEVELOPER: "Can create, reveal, roll, revoke and edit keys, and request "
    "tracing.",
    Role.VIEWER: "Can see keys, usage and history, but no secrets. Can't change anything.",
}
"""What each role permits, for users."""

_TOO_MANY = "Too many emails were requested. Try again in an hour."


class InviteForm(EmailForm):
    """Form of an invitation: an email address and a role."""

    role = forms.ChoiceField(choices=Role.choices, initial=Role.DEVELOPER)


class RoleForm(forms.Form):
    """Form for a member's new role."""

    role = forms.ChoiceField(choices=Role.choices)


@dataclass(frozen=True, slots=True)
class HistoryLine:
    """A change of the members.

    by: you, another member's email address, or the service.
    address: the IP address, which owners see.
    """

    event: MemberEvent
    by: str
    address: str


@dashboard_page(to_change=Role.VIEWER)
@require_POST
def switch(request: HttpRequest) -> HttpResponse:
    """Choose the account that the dashboard acts for: the one in the field `account`."""
    return redirect("dashboard:keys")


@dashboard_page
@require_safe
def index(request: HttpRequest) -> HttpResponse:
    """Show the members, the pending invitations, and the history of both."""
    acting = acting_of(request)
    account = acting.account
    events = account.member_events.select_related("actor", "member")
    page = Paginator(events, EVENTS).get_page(request.GET.get("page"))
    context = {
        "members": account.members.select_related("member").order_by("member__email"),
        "invitations": account.invitations.select_related("invited_by"),
        "meanings": [(role, MEANINGS[role]) for role in Role],
        "page": page,
        "lines": [_line(event, acting) for event in page],
    }
    return render(request, "dashboard/members.html", context)


@dashboard_page(to_look=Role.OWNER, to_change=Role.OWNER)
@require_http_methods(["GET", "HEAD", "POST"])
def invite_form(request: HttpRequest) -> HttpResponse:
    """Invite a person by email. Whether they have an account is not revealed."""
    form = InviteForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        fields = form.cleaned_data
        try:
            _send(request, fields["email"], fields["role"])
        except ValidationError as error:
            form.add_error(None, error.messages)
        else:
            return redirect("dashboard:members")
    context = {
        "form": form,
        "meanings": [(role, MEANINGS[role]) for role in Role],
        "chosen": form["role"].value(),
    }
    status = HTTPStatus.BAD_REQUEST if form.errors else HTTPStatus.OK
    return render(request, "dashboard/invite.html", context, status=status)


@dashboard_page(to_change=Role.OWNER)
@require_POST
def resend(request: HttpRequest, invitation_pk: int) -> HttpResponse:
    """Send an invitation again, with a new link that makes the former one useless."""
    invitation = _invitation(request, invitation_pk)
    try:
        _send(request, invitation.email, invitation.role)
    except ValidationError as error:
        messages.error(request, " ".join(error.messages))
    return redirect("dashboard:members")


@dashboard_page(to_change=Role.OWNER)
@require_POST
def withdraw(request: HttpRequest, invitation_pk: int) -> HttpResponse:
    """Withdraw an invitation."""
    invitation = _invitation(request, invitation_pk)
    try:
        withdraw_invitation(invitation=invitation, actor=actor_of(request))
    except ValidationError as error:
        messages.error(request, " ".join(error.messages))
    else:
        messages.success(request, f"The invitation of {invitation.email} is withdrawn.")
    return redirect("dashboard:members")


@dashboard_page(to_change=Role.OWNER)
@require_POST
def role(request: HttpRequest, member_pk: int) -> HttpResponse:
    """Change a member's role."""
    membership = _membership(request, member_pk)
    form = RoleForm(request.POST)
    if not form.is_valid():
        messages.error(request, "Choose a role.")
        return redirect("dashboard:members")
    try:
        changed = change_role(
            membership=membership,
            role=form.cleaned_data["role"],
            actor=actor_of(request),
        )
    except ValidationError as error:
        messages.error(request, " ".join(error.messages))
    else:
        label = Role(changed.role).label
        messages.success(request, f"{changed.member} has the role {label}.")
    return redirect("dashboard:members")


@dashboard_page(to_look=Role.OWNER, to_change=Role.OWNER)
@require_http_methods(["GET", "HEAD", "POST"])
def remove(request: HttpRequest, member_pk: int) -> HttpResponse:
    """Remove a member, after a confirmation."""
    membership = _membership(request, member_pk)
    if request.method != "POST":
        context = {"membership": membership}
        return render(request, "dashboard/remove_member.html", context)
    remove_member(membership=membership, actor=actor_of(request))
    messages.success(request, f"{membership.member} is no longer a member.")
    return redirect("dashboard:members")


@dashboard_page(to_change=Role.VIEWER)
@require_http_methods(["GET", "HEAD", "POST"])
def leave(request: HttpRequest) -> HttpResponse:
    """Leave the account, after a confirmation. Its own user can't leave it."""
    account, is_own = acting_of(request).account, acting_of(request).is_own
    if request.method != "POST" and not is_own:  # their own is refused below
        return render(request, "dashboard/leave.html")
    try:
        leave_account(account=account, user=user_of(request), actor=actor_of(request))
    except ValidationError as error:
        messages.error(request, " ".join(error.messages))
        return redirect("dashboard:members")
    request.session.pop(SESSION_KEY, None)
    messages.success(request, f"You have left the account {account}.")
    return redirect("dashboard:keys")


def _send(request: HttpRequest, email: str, role: str) -> None:
    """Invite an address and send the email. Raises: ValidationError."""
    actor = actor_of(request)
    try:
        note_mail(email, actor.ip)
    except TooManyMails as error:
        raise ValidationError(_TOO_MANY) from error
    issued = invite(
        account=acting_of(request).account, email=email, role=role, actor=actor
    )
    try:
        mail_invitation(issued)
    except OSError as error:
        logger.error("an email could not be sent: %s", error)
        messages.error(
            request,
            "Email can't be sent at the moment. Send the invitation again later.",
        )
    else:
        messages.success(request, f"An invitation was sent to {email}.")


def _membership(request: HttpRequest, pk: int) -> Membership:
    members = acting_of(request).account.members.select_related("account", "member")
    return get_object_or_404(members, pk=pk)


def _invitation(request: HttpRequest, pk: int) -> Invitation:
    invitations = acting_of(request).account.invitations.select_related("account")
    return get_object_or_404(invitations, pk=pk)


def _line(event: MemberEvent, acting: Acting) -> HistoryLine:
    if event.actor is None:
        return HistoryLine(event, "the service", "")
    is_self = event.actor_id == acting.user.pk
    by = "you" if is_self else event.actor.email
    may_see = is_self or acting.may_manage
    return HistoryLine(event, by, event.actor_ip or "" if may_see else "")
