"""Uploaded ABIs: the visitors to whom their names are shown, and invalid uploads."""

from __future__ import annotations

import json
from http import HTTPStatus

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from abi.addresses import checksummed
from abi.json_abi import MAX_BYTES
from explorer.abi_views import MAX_ABIS
from keys.models import User
from keys.services import issue_key
from networks.models import Network
from nodeapi.models import AbiEntry, ContractAbi
from tests.explorer import chain
from tests.explorer.pages import (
    OWN_ERROR,
    PASSWORD,
    parsed,
    text,
    transaction_path,
)

pytestmark = pytest.mark.usefixtures("hard_network")

PATH = "/explore/hard/abis"

COMPLAINT = {
    "type": "function",
    "name": "complain",
    "inputs": [{"name": "volume", "type": "uint256"}],
}


def selector_clash(kind: str, name: str = "complain") -> list[dict[str, object]]:
    return [{**COMPLAINT, "type": kind, "name": name}]


def client_of(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def client(customer: User) -> Client:
    issue_key(owner=customer, may_trace=True)
    return client_of(customer)


@pytest.fixture
def boss() -> Client:
    user, _ = User.objects.get_or_create(
        email="boss@example.org", defaults={"is_staff": True, "is_superuser": True}
    )
    return client_of(user)


@pytest.fixture(autouse=True)
def no_abis() -> None:
    ContractAbi.objects.all().delete()


def upload(client: Client, entries: object, **form: object) -> int:
    content = {"name": "Complainer", "text": json.dumps(entries), **form}
    return client.post(PATH, content).status_code


def with_selector(selector: str) -> None:
    """Give the uploaded function and error the selector of a recorded transaction."""
    AbiEntry.objects.update(key=bytes.fromhex(selector))


def test_names_are_shown_to_the_users_they_are_for(
    client: Client, boss: Client
) -> None:
    entries = [*selector_clash("function"), *selector_clash("error", "Complained")]
    assert upload(client, entries) == HTTPStatus.FOUND
    with_selector("01020304")
    path = transaction_path(OWN_ERROR)
    page = text(client.get(path))
    assert "complain(uint256)" in page
    assert "Complained(0)" in page
    parsed(page)
    for other in (boss, stranger()):
        assert "complain" not in text(other.get(path)).lower()
    assert upload(boss, entries, name="For all", is_for_all="on") == HTTPStatus.FOUND
    with_selector("01020304")
    for other in (boss, stranger()):
        assert "Complained(0)" in text(other.get(path))
    assert "everyone" in text(client.get(PATH))


def stranger() -> Client:
    user, is_new = User.objects.get_or_create(email="stranger@example.org")
    if is_new:
        issue_key(owner=user, may_trace=True)
    return client_of(user)


def test_the_abi_of_a_contract_comes_before_that_of_all(client: Client) -> None:
    upload(client, selector_clash("function", "general"))
    upload(
        client,
        selector_clash("function", "special"),
        address=checksummed(chain.COMPLAINER),
    )
    upload(
        client, selector_clash("function", "elsewhere"), address=checksummed(chain.WIDE)
    )
    with_selector("01020304")
    page = text(client.get(transaction_path(OWN_ERROR)))
    assert "special" in page
    assert "general" not in page
    assert "elsewhere" not in page


def test_an_abi_replaces_the_one_of_the_same_address(client: Client) -> None:
    for name in ("first", "second"):
        address = checksummed(chain.COMPLAINER)
        upload(client, selector_clash("function", name), name=name, address=address)
    assert [abi.name for abi in ContractAbi.objects.all()] == ["second"]


def test_a_file_is_an_abi_too(client: Client) -> None:
    file = SimpleUploadedFile("abi.json", json.dumps({"abi": [COMPLAINT]}).encode())
    assert (
        client.post(PATH, {"name": "A", "file": file}).status_code == HTTPStatus.FOUND
    )
    assert AbiEntry.objects.get().line == "function complain(uint256 volume)"


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({"text": "{"}, "Invalid JSON"),
        ({"text": "[]"}, "has no function"),
        ({"text": ""}, "Enter an ABI"),
        ({"text": '[{"type":"function","name":"<b>"}]'}, "no valid name"),
        ({"address": "0x12"}, "This is not an address: 0x and 40 "),
        (
            {"address": "0x5AAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"},
            "The checksum of this address is wrong. Check each digit.",
        ),
        ({"name": ""}, "This field is required."),
        ({"name": "a\u202eb"}, "U+202E"),
        (
            {"file": SimpleUploadedFile("a", b" " * (MAX_BYTES + 1))},
            "larger than 512 KiB",
        ),
        (
            {"text": "", "file": SimpleUploadedFile("a", b" " * 2**21)},
            "Enter an ABI, or select a file of at most 512 KiB.",
        ),
        ({"file": SimpleUploadedFile("a", b"\xff\0")}, "Invalid JSON"),
    ],
)
def test_wrong_uploads_are_rejected_and_keep_what_was_typed(
    client: Client, form: dict[str, object], message: str
) -> None:
    content = {"name": "Typed name", "text": json.dumps([COMPLAINT]), **form}
    response = client.post(PATH, content)
    page = text(response)
    assert message in page
    if "name" not in form:
        assert 'value="Typed name"' in page
    parsed(page)
    assert not ContractAbi.objects.exists()


def test_the_number_of_abis_is_limited(client: Client, customer: User) -> None:
    network = Network.objects.get(slug="hard")
    ContractAbi.objects.bulk_create(
        ContractAbi(network=network, owner=customer, address=b"", name="one", size=1)
        for _ in range(MAX_ABIS)
    )
    assert upload(client, [COMPLAINT]) == HTTPStatus.OK
    assert ContractAbi.objects.count() == MAX_ABIS


def test_customers_upload_for_themselves_only(client: Client, customer: User) -> None:
    upload(client, [COMPLAINT], is_for_all="on")
    assert ContractAbi.objects.get().owner == customer
    assert "For everyone" not in text(client.get(PATH))


def test_abis_are_deleted_by_their_owners_and_staff(
    client: Client, boss: Client
) -> None:
    upload(client, [COMPLAINT])
    own = ContractAbi.objects.get()
    upload(boss, [COMPLAINT], is_for_all="on")
    general = ContractAbi.objects.get(owner=None)
    for other, pk in ((stranger(), own.pk), (client, general.pk), (boss, own.pk)):
        response = other.post(f"{PATH}/{pk}/delete")
        assert response.status_code == HTTPStatus.NOT_FOUND
    assert client.post(f"{PATH}/{own.pk}/delete").status_code == HTTPStatus.FOUND
    assert boss.post(f"{PATH}/{general.pk}/delete").status_code == HTTPStatus.FOUND
    assert not AbiEntry.objects.exists()


def test_a_network_that_a_customer_may_not_see_has_no_page() -> None:
    user = User.objects.create_user("nobody@example.org", PASSWORD)
    assert client_of(user).get(PATH).status_code == HTTPStatus.NOT_FOUND
    assert Client().get(PATH).status_code == HTTPStatus.FOUND


def test_staff_see_uploads_in_the_admin(client: Client, boss: Client) -> None:
    upload(client, [COMPLAINT], address=checksummed(chain.WIDE))
    pk = ContractAbi.objects.get().pk
    for path in (
        "/admin/nodeapi/contractabi/",
        f"/admin/nodeapi/contractabi/{pk}/change/",
    ):
        assert checksummed(chain.WIDE) in text(boss.get(path))
