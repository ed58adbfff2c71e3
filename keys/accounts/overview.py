"""The page of a user's own account: address, password, and emails about keys."""

from __future__ import annotations

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from keys.accounts.acting import user_of
from keys.accounts.logged_in import logged_in
from keys.accounts.pages import account_page
from keys.models import NoticeKind


class NoticesForm(forms.Form):
    """Form for the kinds of emails that a user wants to get."""

    wanted = forms.MultipleChoiceField(
        label="Emails about keys",
        choices=NoticeKind.choices,
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )


@account_page
@logged_in
@require_http_methods(["GET", "HEAD", "POST"])
def overview(request: HttpRequest) -> HttpResponse:
    """Show the account. A POST saves the choice of emails."""
    user = user_of(request)
    chosen = [kind for kind in NoticeKind.values if kind not in user.muted_notices]
    form = NoticesForm(
        request.POST if request.method == "POST" else None, initial={"wanted": chosen}
    )
    if form.is_valid():
        wanted = form.cleaned_data["wanted"]
        user.muted_notices = [kind for kind in NoticeKind.values if kind not in wanted]
        user.save(update_fields=["muted_notices"])
        messages.success(request, "Your choice of emails is saved.")
        return redirect("account")
    return render(request, "account/overview.html", {"form": form})
