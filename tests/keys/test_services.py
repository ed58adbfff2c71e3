from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.exceptions import ValidationError
from django.utils import timezone

from keys.format import digest, is_well_formed
from keys.models import ApiKey, Entitlement, KeyVersion, User
from keys.selectors import get_key_version
from keys.services import (
    Actor,
    get_or_create_customer,
    grant_entitlement,
    issue_key,
    issue_version,
    revoke_version,
)
from tests.support.rows import make_network

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner() -> User:
    return get_or_create_customer(email="owner@example.org")


def test_of_an_issued_key_only_the_digest_and_hint_are_stored(owner: User) -> None:
    issued = issue_key(owner=owner, name="dapp")
    assert is_well_formed(issued.secret)
    version = KeyVersion.objects.get()
    assert version.digest == digest(issued.secret)
    row = " ".join(map(str, KeyVersion.objects.values_list().get()))
    assert issued.secret[7:-4] not in row
    assert issued.secret not in repr(issued)
    api_key = ApiKey.objects.get()
    assert (api_key.owner, api_key.name) == (owner, "dapp")


def test_key_gets_its_networks(owner: User) -> None:
    alpha, beta = make_network("alpha"), make_network("beta")
    assert set(issue_key(owner=owner, networks=[beta]).api_key.networks.all()) == {beta}
    assert not issue_key(owner=owner).api_key.networks.exists()
    assert alpha.api_keys.count() == 0


def test_expiry_in_the_past_issues_nothing(owner: User) -> None:
    with pytest.raises(ValidationError, match="in the past"):
        issue_key(owner=owner, expires_at=timezone.now() - timedelta(seconds=1))
    assert not ApiKey.objects.exists()


def test_api_key_may_have_several_secrets(owner: User) -> None:
    first = issue_key(owner=owner)
    second = issue_version(api_key=first.api_key)
    assert first.secret != second.secret
    assert set(first.api_key.versions.live()) == {first.version, second.version}


def test_revoking_is_recorded_and_final(owner: User) -> None:
    staff = User.objects.create(email="staff@example.org", is_staff=True)
    issued = issue_key(owner=owner)
    revoke_version(version=issued.version, reason="leaked", actor=Actor(staff))
    version = KeyVersion.objects.get()
    assert version.revoked_at is not None
    assert (version.revoked_by, version.revoke_reason) == (staff, "leaked")
    assert not KeyVersion.objects.live().exists()
    with pytest.raises(ValidationError, match="already revoked"):
        revoke_version(version=issued.version, reason="again")
    assert KeyVersion.objects.get().revoke_reason == "leaked"


def test_expired_version_is_not_live(owner: User) -> None:
    issued = issue_key(owner=owner)
    KeyVersion.objects.update(expires_at=timezone.now())
    assert not issued.api_key.versions.live().exists()


def test_customer_is_made_once_whatever_the_case_and_cannot_log_in() -> None:
    customer = get_or_create_customer(email=" Some.One@Example.org ")
    assert customer.email == "some.one@example.org"
    assert not customer.has_usable_password()
    assert not customer.is_staff
    assert get_or_create_customer(email="some.one@example.org") == customer
    with pytest.raises(ValidationError, match="valid email"):
        get_or_create_customer(email="nobody")


def test_version_is_found_by_key_and_by_hint(owner: User) -> None:
    issued = issue_key(owner=owner)
    issue_key(owner=owner)
    for text in (
        issued.secret,
        f" {issued.secret}\n",
        issued.version.hint,
        issued.version.hint.replace("…", "..."),
    ):
        assert get_key_version(text) == issued.version
    with pytest.raises(KeyVersion.DoesNotExist):
        get_key_version("nk_none")


def test_granting_again_gives_new_terms_and_keeps_none_of_the_old(owner: User) -> None:
    staff = User.objects.create(email="staff@example.org", is_staff=True)
    alpha = make_network("alpha")
    api_key = issue_key(owner=owner).api_key
    first = grant_entitlement(
        api_key=api_key,
        network=alpha,
        tracers=["muxTracer", "muxTracer", "callTracer"],
        expires_at=timezone.now() + timedelta(days=1),
        note="trial",
        actor=Actor(staff),
    )
    assert first.tracers == ["muxTracer", "callTracer"]
    grant_entitlement(api_key=api_key, network=alpha)
    second = Entitlement.objects.get()
    assert second.pk == first.pk
    assert (second.tracers, second.expires_at, second.note) == ([], None, "")
    assert second.granted_by is None
    assert second.granted_at > first.granted_at


def test_tracer_or_capability_that_does_not_exist_is_not_granted(owner: User) -> None:
    alpha = make_network("alpha")
    api_key = issue_key(owner=owner).api_key
    for terms in ({"tracers": ["newTracer"]}, {"capability": "fly"}):
        with pytest.raises(ValidationError, match="not a valid choice"):
            grant_entitlement(api_key=api_key, network=alpha, **terms)
    assert not Entitlement.objects.exists()


def test_entitlement_lives_until_it_expires(owner: User) -> None:
    api_key = issue_key(owner=owner).api_key
    granted = grant_entitlement(api_key=api_key, network=make_network("alpha"))
    assert Entitlement.objects.live().get() == granted
    Entitlement.objects.update(expires_at=timezone.now())
    assert not Entitlement.objects.live().exists()


def test_key_that_may_trace_does_so_where_it_opens_the_door(owner: User) -> None:
    alpha, beta = make_network("alpha"), make_network("beta")
    staff = User.objects.create(email="staff@example.org", is_staff=True)
    everywhere = issue_key(owner=owner, may_trace=True, actor=Actor(staff)).api_key
    somewhere = issue_key(owner=owner, may_trace=True, networks=[beta]).api_key
    assert {e.network for e in everywhere.entitlements.all()} == {alpha, beta}
    assert {e.granted_by for e in everywhere.entitlements.all()} == {staff}
    assert {e.network for e in somewhere.entitlements.all()} == {beta}
