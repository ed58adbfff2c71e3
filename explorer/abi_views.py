"""The page of a network's uploaded ABIs."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from abi.addresses import WrongChecksum, checksummed, parse_address
from abi.json_abi import MAX_BYTES, InvalidAbi, read_abi
from explorer.access import admitted
from explorer.responses import private
from keys.accounts.logged_in import logged_in
from keys.models import User
from keys.policy import with_own_scripts
from keys.selectors import account_ids
from legible.fields import validate_name
from networks.models import Network
from nodeapi.models import AbiEntry, ContractAbi

MAX_ABIS = 50
"""Maximum number of ABIs of a user on a network, and of ABIs for everyone."""

UPLOAD_FOR_ALL = "nodeapi.add_contractabi"
"""The permission of staff to upload and delete ABIs for everyone."""


def may_upload_for_all(user: User) -> bool:
    """Return whether a user may upload and delete ABIs for everyone."""
    return user.is_staff and user.has_perm(UPLOAD_FOR_ALL)


def visible_abis(network: Network, user: User) -> QuerySet[ContractAbi]:
    """Return a network's ABIs for everyone, and those of the user's accounts."""
    visible = Q(owner=None) | Q(owner__in=account_ids(user))
    found = ContractAbi.objects.filter(visible, network=network)
    return found.select_related("owner")


@transaction.atomic
def upload_abi(
    *,
    network: Network,
    user: User,
    name: str,
    address: bytes,
    text: str,
    is_for_all: bool = False,
) -> ContractAbi:
    """Store an ABI. It replaces the owner's former one for the same address.

    address: of the contract; empty for all contracts of the network.
    text: JSON, see `abi.json_abi`.
    is_for_all: whether everyone sees the names. The caller checks the permission.

    Raises: ValidationError for an invalid ABI or name, and if there are too many ABIs.
    """
    try:
        definitions = read_abi(text)
    except InvalidAbi as error:
        raise ValidationError({"text": str(error)}) from None
    # Concurrent uploads of a user wait, so that none exceeds the limit.
    User.objects.select_for_update(no_key=True).only("pk").get(pk=user.pk)
    owner = None if is_for_all else user
    kept = ContractAbi.objects.filter(network=network, owner=owner)
    if address:
        kept.filter(address=address).delete()
    if kept.count() >= MAX_ABIS:
        have = "There are" if is_for_all else "You have"
        which = "ABIs for everyone" if is_for_all else "ABIs on this network"
        raise ValidationError(
            f"{have} {MAX_ABIS} {which}, which is the limit. Delete one first."
        )
    abi = ContractAbi(
        network=network,
        owner=owner,
        address=address,
        name=name,
        size=len(definitions),
        uploaded_by=user,
    )
    abi.full_clean(exclude=["address"])  # which may be empty
    abi.save()
    AbiEntry.objects.bulk_create(
        AbiEntry(abi=abi, key=one.key, line=one.line) for one in definitions
    )
    return abi


def delete_abi(*, network: Network, user: User, pk: int) -> bool:
    """Delete an ABI. Return False if there is none that the user may delete."""
    deletable = Q(owner=user)
    if may_upload_for_all(user):
        deletable |= Q(owner=None)
    found = ContractAbi.objects.filter(deletable, network=network, pk=pk).first()
    if found is None:
        return False
    found.delete()
    return True


SHOWN = 2 * MAX_ABIS
"""Number of ABIs for everyone, and of other ABIs, on the page."""


class AbiForm(forms.Form):
    """An ABI as text or as a file. The values after validation are those to store."""

    name = forms.CharField(
        max_length=100,
        validators=[validate_name],
        help_text="For example, the name of the contract.",
    )
    address = forms.CharField(
        label="Contract address",
        required=False,
        max_length=42,
        help_text="Leave it empty to use the ABI for all contracts of the network.",
    )
    text = forms.CharField(
        label="ABI",
        required=False,
        max_length=MAX_BYTES,
        widget=forms.Textarea(attrs={"rows": 8, "spellcheck": "false"}),
        help_text="The JSON that solc, Hardhat or Foundry generates.",
    )
    file = forms.FileField(
        label="Or a file",
        required=False,
        help_text=f"A JSON file of at most {MAX_BYTES // 1024} KiB.",
    )
    is_for_all = forms.BooleanField(label="For everyone", required=False)

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("label_suffix", "")
        super().__init__(*args, **kwargs)
        if not may_upload_for_all(user):
            del self.fields["is_for_all"]

    def clean_address(self) -> bytes:
        """Return the address, empty without one. Raises: ValidationError."""
        text = self.cleaned_data["address"].strip()
        try:
            return parse_address(text) if text else b""
        except WrongChecksum as error:
            raise ValidationError(str(error)) from None
        except ValueError:
            fault = (
                "This is not an address: 0x and 40 hexadecimal digits were expected."
            )
            raise ValidationError(fault) from None

    def clean_file(self) -> str:
        """Return the text of the file, empty without one. Raises: ValidationError."""
        file = self.cleaned_data["file"]
        if file is None:
            return ""
        if file.size > MAX_BYTES:
            raise ValidationError(f"The file is larger than {MAX_BYTES // 1024} KiB.")
        return str(file.read().decode(errors="replace"))

    def clean(self) -> dict[str, Any]:
        """Check that there is an ABI. Raises: ValidationError."""
        cleaned = self.cleaned_data
        if not self.errors and not (cleaned.get("text") or cleaned.get("file")):
            self.add_error(
                "text",
                f"Enter an ABI, or select a file of at most {MAX_BYTES // 1024} KiB.",
            )
        return cleaned


@with_own_scripts
@private
@require_http_methods(["GET", "HEAD", "POST"])
@logged_in
def abis(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the ABIs that the user may use on a network, and upload another one."""
    network, _ = admitted(request, slug)
    user = _user(request)
    form = AbiForm(user, request.POST or None, request.FILES or None)
    if request.method == "POST" and form.is_valid() and _upload(form, network, user):
        return HttpResponseRedirect(reverse("explore:abis", args=[slug]))
    found = visible_abis(network, user)
    context = {
        "network": network,
        "form": form,
        "most": MAX_ABIS,
        "lines": [_line(abi, user) for abi in found[:SHOWN]],
    }
    return render(request, "explore/abis.html", context)


@private
@require_POST
@logged_in
def delete(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Delete an ABI of the user. Staff can also delete ABIs for everyone."""
    network, _ = admitted(request, slug)
    if not delete_abi(network=network, user=_user(request), pk=pk):
        raise Http404
    return HttpResponseRedirect(reverse("explore:abis", args=[slug]))


def _user(request: HttpRequest) -> User:
    assert isinstance(request.user, User), "the views require a login"
    return request.user


def _upload(form: AbiForm, network: Network, user: User) -> bool:
    """Store the ABI of a valid form. Return False, with errors in the form, if it fails."""
    cleaned = form.cleaned_data
    try:
        upload_abi(
            network=network,
            user=user,
            name=cleaned["name"],
            address=cleaned["address"],
            text=cleaned["file"] or cleaned["text"],
            is_for_all=cleaned.get("is_for_all", False),
        )
    except ValidationError as error:
        form.add_error(None, error)
        return False
    return True


def _line(abi: ContractAbi, user: User) -> dict[str, Any]:
    address = bytes(abi.address)
    is_own = abi.owner_id == user.pk
    return {
        "abi": abi,
        "address": checksummed(address) if address else "",
        "is_own": is_own,
        "may_delete": is_own or (abi.owner_id is None and may_upload_for_all(user)),
    }
