"""The page of a user's accounts."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django import forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from abi.addresses import WrongChecksum, parse_address
from legible.fields import validate_name
from wallets.caip import EIP155
from wallets.models import Account, ConsentRequest, Keystore
from wallets.nodes.page_node import PageNode, node_of
from wallets.offers import wallet_offer
from wallets.pages.policy import cause_of, user_of, wallet_page
from wallets.pages.transactions import ether
from wallets.pages.words import scope_names
from wallets.services.accounts import (
    MAX_ACCOUNTS,
    add_account,
    move_account,
    remove_account,
    rename_account,
)
from wallets.upstream import ChainNode


class LabelForm(forms.Form):
    """The user's label of an account."""

    label = forms.CharField(max_length=60, required=False, validators=[validate_name])


class AccountForm(LabelForm):
    """A new account."""

    address = forms.CharField(
        max_length=128,
        widget=forms.TextInput(
            attrs={
                "autocapitalize": "none",
                "autocomplete": "off",
                "placeholder": "0x…",
                "spellcheck": "false",
            }
        ),
    )
    field_order = ["address", "label"]

    def clean_address(self) -> str:
        """Reject a typing mistake, which the checksum of an address reveals."""
        text: str = self.cleaned_data["address"]
        try:
            parse_address(text)
        except WrongChecksum as error:
            raise ValidationError(str(error)) from error
        except ValueError:
            pass  # reported when the account is added
        return text


class MoveForm(forms.Form):
    """The number of accounts before the moved one."""

    position = forms.IntegerField(min_value=0, max_value=MAX_ACCOUNTS)


@dataclass(frozen=True, slots=True)
class Renamed:
    """An account whose new label was rejected. form: has the label and the errors."""

    pk: int
    form: LabelForm


BALANCE_SECONDS = 3.0
"""Time limit for reading the balances of a page."""


@dataclass(frozen=True, slots=True)
class Balance:
    """An account's balance on a network.

    ether: None if it could not be read.
    """

    network: str
    scope: str
    ether: str | None


@wallet_page
@require_http_methods(["GET", "HEAD", "POST"])
def accounts(request: HttpRequest) -> HttpResponse:
    """Show the user's accounts. A POST adds an account."""
    user = user_of(request)
    form = AccountForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        try:
            add_account(user=user, cause=cause_of(request), **form.cleaned_data)
        except ValidationError as error:
            form.add_error(None, error)
        else:
            return redirect("wallet:accounts")
    return _show(request, form)


def _show(
    request: HttpRequest, form: AccountForm, renamed: Renamed | None = None
) -> HttpResponse:
    """Show the accounts. form: for another one. renamed: a label that was rejected."""
    user = user_of(request)
    own = list(Account.objects.filter(user=user).select_related("keystore"))
    lines = _balances(own, node_of(request)) if own else []
    context = {
        "accounts": list(zip(own, lines, strict=True)),
        "form": form,
        "renamed": renamed,
        "is_late": any(one.ether is None for line in lines for one in line),
        "requests": ConsentRequest.objects.pending().filter(dapp__user=user).count(),
    }
    return render(request, "wallets/accounts.html", context)


@wallet_page
@require_POST
def rename(request: HttpRequest, pk: int) -> HttpResponse:
    """Rename an account. An invalid label stays in its field."""
    account = _own(request, pk)
    form = LabelForm(request.POST)
    if not form.is_valid():
        return _show(request, AccountForm(), Renamed(pk, form))
    rename_account(account=account, label=form.cleaned_data["label"])
    return redirect("wallet:accounts")


@wallet_page
@require_POST
def move(request: HttpRequest, pk: int) -> HttpResponse:
    """Move an account in the order of accounts. The first one is the primary account."""
    account = _own(request, pk)
    form = MoveForm(request.POST)
    if form.is_valid():
        position = form.cleaned_data["position"]
        move_account(account=account, position=position, cause=cause_of(request))
    return redirect("wallet:accounts")


@wallet_page
@require_POST
def remove(request: HttpRequest, pk: int) -> HttpResponse:
    """Remove an account from the wallet and from all dapps.

    An account with a key is removed only if the user has ticked the confirmation.
    """
    account = _own(request, pk)
    is_sure = request.POST.get("sure") == "yes"
    if is_sure or not Keystore.objects.filter(account=account).exists():
        remove_account(account=account, cause=cause_of(request))
    else:
        messages.error(request, "Nothing was removed: tick the box to confirm.")
    return redirect("wallet:accounts")


def _own(request: HttpRequest, pk: int) -> Account:
    """Return an account of the user. Raises: Http404."""
    return get_object_or_404(Account, pk=pk, user=user_of(request))


def _balances(accounts: list[Account], node: PageNode | None) -> list[list[Balance]]:
    """Return the balances of each account on all chains on which it exists."""
    names = scope_names()
    scopes = [
        scope
        for scope in wallet_offer(can_sign=False)
        if scope.startswith(f"{EIP155}:")
    ]
    addresses = [one.address for one in accounts]
    found: dict[tuple[str, str], int] = {}
    if node is not None:

        async def read(nodes: Mapping[str, ChainNode]) -> dict[tuple[str, str], int]:
            return await read_balances(nodes, addresses)

        found = node.ask(scopes, read, BALANCE_SECONDS) or {}
    return [
        [
            Balance(names.get(scope, scope), scope, _ether(found.get((scope, address))))
            for scope in scopes
        ]
        for address in addresses
    ]


def _ether(wei: int | None) -> str | None:
    return None if wei is None else ether(wei)


MAX_READ = 500
"""Balances that are read for a page."""


async def read_balances(
    nodes: Mapping[str, ChainNode], addresses: Sequence[str]
) -> dict[tuple[str, str], int]:
    """Return balances in wei at the newest blocks, by scope and address.

    nodes: by scope. Balances that can't be read are left out.
    """
    pairs = [(scope, address) for address in addresses for scope in nodes]
    pairs = pairs[:MAX_READ]
    found = await asyncio.gather(
        *(
            nodes[scope].call("eth_getBalance", address, "latest")
            for scope, address in pairs
        ),
        return_exceptions=True,
    )
    return {
        pair: int(value, 16)
        for pair, value in zip(pairs, found, strict=True)
        if isinstance(value, str)
    }
