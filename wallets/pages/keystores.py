"""The pages of accounts' keys: create, import, export, delete."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from keys.models import User
from wallets.models import Account
from wallets.pages.policy import cause_of, user_of, wallet_page
from wallets.pages.recent import after_recent_login
from wallets.pages.unlocking import TOO_BUSY, PassphraseForm, secret_field, unlocking
from wallets.services.keystores import (
    create_key,
    delete_key,
    import_key,
    open_file,
    save_key,
)
from wallets.signing.keys import MAX_KEYSTORE_BYTES, read_key
from wallets.signing.turns import TooBusy


class KeyForm(forms.Form):
    """The passphrase of a new keystore, and the label of its account."""

    label = forms.CharField(
        max_length=60,
        required=False,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    passphrase = secret_field(
        autocomplete="new-password",
        help_text="You need it for each signature. It is not stored, so it can't be "
        "recovered. It has at least 8 characters and is not the password of your login.",
    )
    again = secret_field(label="Repeat the passphrase", autocomplete="new-password")

    def clean(self) -> dict[str, Any]:
        """Return the data. Reject it if the two passphrases differ."""
        given = self.cleaned_data
        if given.get("passphrase") != given.get("again"):
            self.add_error("again", "The passphrases differ.")
        return given


class ImportForm(KeyForm):
    """A key to import: a keystore file or a private key."""

    keystore = forms.FileField(
        required=False,
        help_text="A JSON file of another wallet (Web3 Secret Storage, version 3).",
    )
    keystore_passphrase = secret_field(
        label="Passphrase of the keystore", required=False
    )
    private_key = secret_field(
        required=False,
        help_text="Instead of a keystore: 64 hexadecimal digits.",
    )
    field_order = ["keystore", "keystore_passphrase", "private_key", "label"]

    def clean(self) -> dict[str, Any]:
        """Reject a form with both forms of a key, or with neither."""
        given = super().clean()
        if bool(given.get("keystore")) == bool(given.get("private_key")):
            raise ValidationError(
                "Select a keystore of at most 16 KiB or enter a private key, but not both."
            )
        return given

    def key(self, user: User) -> bytes:
        """Return the private key that the form contains, 32 bytes.

        Raises: ValidationError for an invalid file, passphrase or key; TooBusy if too
            many keystores are being decrypted.
        """
        file: UploadedFile | None = self.cleaned_data["keystore"]
        if file is not None:
            text = file.read(MAX_KEYSTORE_BYTES + 1).decode(errors="replace")
            passphrase = self.cleaned_data["keystore_passphrase"]
            return open_file(user=user, text=text, passphrase=passphrase)
        try:
            return read_key(self.cleaned_data["private_key"])
        except ValueError as error:
            raise ValidationError({"private_key": f"This is {error}."}) from error


@wallet_page
@sensitive_post_parameters()
@require_http_methods(["GET", "HEAD", "POST"])
@after_recent_login
def create(request: HttpRequest) -> HttpResponse:
    """Create an account with a new key."""
    form = KeyForm(request.POST if request.method == "POST" else None)
    return _add(request, form, "wallets/account_create.html")


@wallet_page
@sensitive_post_parameters()
@require_http_methods(["GET", "HEAD", "POST"])
@after_recent_login
def import_account(request: HttpRequest) -> HttpResponse:
    """Import a key from another wallet."""
    is_posted = request.method == "POST"
    form = ImportForm(
        request.POST if is_posted else None, request.FILES if is_posted else None
    )
    return _add(request, form, "wallets/account_import.html")


@wallet_page
@sensitive_post_parameters()
@require_http_methods(["GET", "HEAD", "POST"])
@after_recent_login
def key(request: HttpRequest, pk: int) -> HttpResponse:
    """Show the page of an account's key. A POST downloads the key as a keystore file."""
    account = _own(request, pk)
    if request.method != "POST":
        return _show(request, account, PassphraseForm())
    form = PassphraseForm(request.POST)
    if form.is_valid():
        with unlocking(form, account):
            document = save_key(
                account=account,
                passphrase=form.cleaned_data["passphrase"],
                cause=cause_of(request),
            )
            return _file(account, document)
    return _show(request, account, form, HTTPStatus.BAD_REQUEST)


@wallet_page
@require_POST
@after_recent_login
def delete(request: HttpRequest, pk: int) -> HttpResponse:
    """Delete an account's key, if the user has ticked the confirmation."""
    account = _own(request, pk)
    if request.POST.get("sure") != "yes":
        messages.error(request, "Nothing was deleted: tick the box to confirm.")
        return redirect("wallet:key", pk)
    delete_key(account=account, cause=cause_of(request))
    messages.success(request, "The key was deleted. The account is watch-only now.")
    return redirect("wallet:accounts")


def _add(request: HttpRequest, form: KeyForm, template: str) -> HttpResponse:
    """Create the account of a valid form, or show the form."""
    status = HTTPStatus.BAD_REQUEST if form.is_bound else HTTPStatus.OK
    if form.is_valid():
        given = {name: form.cleaned_data[name] for name in ("passphrase", "label")}
        user = user_of(request)
        given |= {"user": user, "cause": cause_of(request)}
        try:
            if isinstance(form, ImportForm):
                account = import_key(key=form.key(user), **given)
            else:
                account = create_key(**given)
        except ValidationError as error:
            form.add_error(None, error)
        except TooBusy:
            form.add_error(None, TOO_BUSY)
            status = HTTPStatus.SERVICE_UNAVAILABLE
        else:
            messages.success(
                request, "The account was added. Download its keystore as a backup."
            )
            return redirect("wallet:key", account.pk)
    return render(request, template, {"form": form}, status=status)


def _show(
    request: HttpRequest,
    account: Account,
    form: PassphraseForm,
    status: HTTPStatus = HTTPStatus.OK,
) -> HttpResponse:
    context = {"account": account, "form": form}
    return render(request, "wallets/key.html", context, status=status)


def _file(account: Account, document: dict[str, Any]) -> HttpResponse:
    """Return a keystore as a file, named as go-ethereum names them."""
    moment = f"{timezone.now():%Y-%m-%dT%H-%M-%S.%f}000Z"
    name = f"UTC--{moment}--{account.address.removeprefix('0x')}.json"
    response = HttpResponse(json.dumps(document), content_type="application/json")
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def _own(request: HttpRequest, pk: int) -> Account:
    """Return an account of the user that has a key. Raises: Http404."""
    own = Account.objects.filter(user=user_of(request), keystore__isnull=False)
    return get_object_or_404(own, pk=pk)
