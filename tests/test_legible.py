"""Names and texts for people have no hidden characters."""

from __future__ import annotations

import unicodedata
from io import StringIO

import pytest
from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client

from keys.models import AccessRequest, ApiKey, ApiToken, Entitlement, Plan, User
from keys.services import create_key, update_key
from keys.services.limits import set_plan
from legible.fields import validate_name, validate_note
from legible.text import MAX_MARKS, find_hidden_in_name, hides_something, visible
from networks.models import Network
from networks.services import configure_network
from tests.support.rows import make_network
from tests.support.wallet import A1, BY_USER, new_user
from wallets.models import Account, BlockedDapp, Dapp, Pairing
from wallets.services.accounts import add_account, rename_account
from wallets.services.pairing import start_program_pairing

EVIL = "\u202eyek live\u2066"
"""A text that is displayed as "evil key"."""

HIDDEN = [
    *("\u202e", "\u2066", "\u200e", "\u200f", "\u061c", "\u200b", "\ufeff", "\u2060"),
    *("\u00ad", "\u3164", "\u115f", "\uffa0", "\u2800", "\u034f", "\u180e", "\u17b4"),
    *("\U000e0041", "\U000e0101", "\x00", "\x1b", "\x7f", "\x85", "\u2028", "\n", "\t"),
    *("\ue000", "\ud800", "\ufe0f", "\ufe00", "\u200c", "\u200d", "\U0001d173"),
]
"""Controls, bidirectional controls, fillers, tags, variation selectors and joiners."""

NAMES = [
    *("", "Indexer", "Grüße – 2nd node (EU) #1", "日本語", "Ключ", "Ελλάδα", "한국어"),
    "ارتباط",
    "می‌خواهم",  # Persian: ZWNJ between letters
    "מפתח שָׁלוֹם",
    "क्‍ष क्‌ष নির্দেশ",  # ZWJ and ZWNJ behind a virama
    "မြွှေး ངྒྱུད་",
    "tiếng Việt",
    "❤️ 1️⃣ ©️ 👩‍💻 🏳️‍🌈 👍🏽",
]


@pytest.mark.parametrize("hidden", HIDDEN, ids=lambda c: f"U+{ord(c):04X}")
def test_hidden_characters_are_refused_in_names(hidden):
    for name in (f"a{hidden}b", f"{hidden}a", f"a{hidden}", f"pay{hidden}pal"):
        assert find_hidden_in_name(name) == hidden
        with pytest.raises(ValidationError, match=f"U\\+{ord(hidden):04X}"):
            validate_name(name)


@pytest.mark.parametrize("name", NAMES)
def test_names_in_all_scripts_are_accepted(name):
    assert find_hidden_in_name(name) is None
    assert find_hidden_in_name(unicodedata.normalize("NFD", name)) is None


def test_marks_beyond_a_few_are_shown_by_their_numbers():
    good = "e" + "\u0301" * MAX_MARKS
    assert visible(good) == good
    assert visible(good + "\u0301" * 2 + "x") == good + "⟨U+0301 ×2⟩x"
    assert visible("e\u0301" * 100) == "e\u0301" * 100
    assert hides_something("a" + "\u0489" * 240)
    assert find_hidden_in_name("a" + "\u0301" * 240) == "\u0301"


def test_variation_selectors_are_hidden_behind_letters_alone():
    assert visible("pay\ufe0fpal") == "pay⟨U+FE0F⟩pal"
    assert visible("❤\ufe0f 1\ufe0f\u20e3") == "❤\ufe0f 1\ufe0f\u20e3"


def test_joiners_are_shown_in_texts_that_are_signed():
    assert hides_something("a\u200db")


@pytest.mark.django_db
@pytest.mark.parametrize("name", [EVIL, "Z" + "\u0301" * 20, "a\u200bb"])
def test_every_name_that_others_read_is_checked(name):
    network, user = make_network("alpha"), new_user()
    account = add_account(user=user, address=A1, cause=BY_USER)
    api_key = create_key(owner=user, name="Indexer")
    changes = [
        lambda: create_key(owner=user, name=name),
        lambda: update_key(api_key=api_key, name=name),
        lambda: set_plan(slug="gold", name=name),
        lambda: configure_network(network=network, name=name),
        lambda: rename_account(account=account, label=name),
        lambda: start_program_pairing(user=user, label=name),
        lambda: User(email="x@example.org", first_name=name).full_clean(),
        lambda: User(email="x@example.org", last_name=name).full_clean(),
        lambda: ApiToken(name=name).clean_fields(),
        lambda: User(email=f"x@{name}.example").clean_fields(),
        lambda: create_key(owner=user, name="Noted", staff_note=f"see\n{name}"),
        lambda: Entitlement(note=name).clean_fields(),
        lambda: AccessRequest(reason=name).clean_fields(),
        lambda: AccessRequest(answer=name).clean_fields(),
        lambda: BlockedDapp(reason=name).clean_fields(),
    ]
    for change in changes:
        with pytest.raises(ValidationError, match="it can't be seen"):
            change()
    for command in (
        ["issue_key", "--owner", "mail@example.org", "--name", name],
        ["configure_network", "alpha", "--name", name],
    ):
        with pytest.raises(CommandError, match="it can't be seen"):
            call_command(*command, stdout=StringIO(), stderr=StringIO())
    assert not Pairing.objects.exists()
    assert not Plan.objects.filter(slug="gold").exists()


@pytest.mark.django_db
def test_forms_say_what_is_wrong():
    user = new_user()
    client = Client()
    client.force_login(user)
    for path, form in (
        ("/wallet/programs", {"label": EVIL}),
        ("/wallet/accounts", {"label": EVIL, "address": A1}),
        ("/dashboard/keys/new", {"name": EVIL}),
    ):
        answer = client.post(path, form)
        assert answer.status_code in (200, 400), path
        assert b"U+202E" in answer.content, path
    assert not Account.objects.filter(user=user).exists()
    assert not ApiKey.objects.filter(owner=user).exists()


@pytest.mark.django_db
def test_name_of_an_earlier_version_is_shown_safely_and_its_row_can_be_saved():
    api_key = create_key(owner=new_user(), name="Indexer")
    long = "\u200b" + "a" * 98 + "\u200b"
    for old, shown in ((EVIL, "⟨U+202E⟩yek live⟨U+2066⟩"), (long, visible(long)[:100])):
        with connection.cursor() as cursor:
            cursor.execute("UPDATE keys_apikey SET name = %s", [old])
        found = ApiKey.objects.get(pk=api_key.pk)
        assert found.name == shown
        assert ApiKey.objects.values_list("name", flat=True).get() == shown
        update_key(api_key=found, staff_note="see ticket 7")
        assert ApiKey.objects.get().staff_note == "see ticket 7"
    staff = Client()
    staff.force_login(User.objects.create_superuser("staff@example.org"))
    listed = staff.get("/admin/keys/apikey/").content.decode()
    assert "\u202e" not in listed


@pytest.mark.django_db
def test_admin_rejects_hidden_characters_in_addresses_and_groups():
    staff = Client()
    staff.force_login(User.objects.create_superuser("staff@example.org"))
    password = {"password1": "correct horse", "password2": "correct horse"}
    address = {"email": "x@\u202eexample.org", "usable_password": "true", **password}
    for path, form in (
        ("/admin/auth/group/add/", {"name": EVIL}),
        ("/admin/keys/user/add/", address),
    ):
        answer = staff.post(path, form)
        assert (answer.status_code, b"U+202E" in answer.content) == (200, True), path
    assert not Group.objects.filter(name=EVIL).exists()
    assert User.objects.count() == 1


@pytest.mark.django_db
def test_sign_up_rejects_hidden_characters_in_an_address():
    answer = Client().post("/account/signup", {"email": "x@\u202eexample.org"})
    assert b"U+202E" in answer.content


def test_notes_may_have_several_lines_and_tabs():
    validate_note("first\r\nsecond\n\tthird")


@pytest.mark.django_db
def test_note_of_an_earlier_version_is_shown_safely():
    api_key = create_key(owner=new_user(), staff_note="one\ntwo")
    assert ApiKey.objects.get(pk=api_key.pk).staff_note == "one\ntwo"
    with connection.cursor() as cursor:
        cursor.execute("UPDATE keys_apikey SET staff_note = %s", [EVIL])
    assert ApiKey.objects.get().staff_note == "⟨U+202E⟩yek live⟨U+2066⟩"


def test_columns_of_names():
    for model, column in (
        *((ApiKey, "name"), (ApiToken, "name"), (Plan, "name"), (Network, "name")),
        *((Account, "label"), (Dapp, "label"), (Pairing, "label")),
        *((User, "first_name"), (User, "last_name")),
    ):
        assert validate_name in model._meta.get_field(column).validators, model
