"""Uploads of contract ABIs: by staff for everyone, by customers for themselves."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Q, QuerySet

from abi.json_abi import InvalidAbi, read_abi
from keys.models import User
from keys.selectors import account_ids
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
