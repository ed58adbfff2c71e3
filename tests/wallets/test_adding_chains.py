"""wallet_addEthereumChain adds one of the served chains, with the user's consent."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from networks.models import Network
from tests.support.signing import SIGNER, add_key
from tests.support.wallet import A1, BY_USER, UNAUTHORIZED, Rig
from wallets.models import Activity, ConsentRequest, Event, Session
from wallets.permissions import Group
from wallets.services import sessions

INVOKE = "wallet_invokeMethod"
OWN = "wallet:eip155"
POLYGON = "eip155:137"


@pytest.fixture
def connected(rig: Rig) -> Rig:
    """Return a rig whose dapp may read one chain, and request more."""
    rig.create("eip155:1", OWN, groups=frozenset({Group.READ}))
    return rig


def call(rig: Rig, chain: object) -> dict[str, object]:
    return rig.invoke(OWN, "wallet_addEthereumChain", chain)


def asked(rig: Rig, chain_id: int = 137):
    """Return a call that waits for the user's decision."""
    return rig.start(rig.s1, call(rig, {"chainId": hex(chain_id)}), INVOKE)


def ended(rig: Rig, task) -> tuple[int, str]:
    error = rig.finish(task)
    return error.code, error.message


def scopes_of(rig: Rig) -> dict[str, object]:
    found: dict[str, object] = rig.session()["sessionScopes"]
    return found


def test_chain_of_the_session_needs_no_adding(connected: Rig):
    assert (
        connected.result(connected.s1, INVOKE, call(connected, {"chainId": "0x1"}))
        is None
    )
    assert not ConsentRequest.objects.pending().filter(dapp=connected.dapp).exists()


@pytest.mark.parametrize(
    "chain", [{"chainId": "0x1234"}, {"chainId": "0x01"}, {"chainId": 1}, {}, "x"]
)
def test_chain_that_is_not_served_is_refused(connected: Rig, chain):
    """The wallet does not use nodes that dapps name."""
    assert connected.code(connected.s1, INVOKE, call(connected, chain)) == -32602
    assert not ConsentRequest.objects.pending().filter(dapp=connected.dapp).exists()


def test_chain_without_blocks_is_refused(connected: Rig):
    polygon = Network.objects.filter(chain_id=137)
    (head,) = polygon.values_list("head_number", flat=True)
    try:
        polygon.update(head_number=None)
        code = connected.code(
            connected.s1, INVOKE, call(connected, {"chainId": "0x89"})
        )
    finally:
        polygon.update(head_number=head)
    assert code == -32602


def test_user_lets_a_dapp_use_one_more_chain_as_it_uses_the_others(connected: Rig):
    before = scopes_of(connected)
    task = asked(connected)
    connected.approve(groups=frozenset({Group.READ}))
    assert connected.finish(task) is None
    after = scopes_of(connected)
    assert list(after) == ["eip155:1", OWN, POLYGON]
    assert after | before == after  # the existing scopes are unchanged
    assert after[POLYGON]["methods"] == before["eip155:1"]["methods"]
    assert after[POLYGON]["accounts"] == [f"{POLYGON}:{A1}"]
    line = Activity.objects.filter(user=connected.user).latest("id")
    assert (line.event, line.details) == (Event.GRANTED, {"added": [POLYGON]})
    # The response does not contain the session, so that the caller needs the event, too.
    assert Session.objects.get(dapp=connected.dapp).changed_by == ""


def test_user_says_no(connected: Rig):
    before = scopes_of(connected)
    task = asked(connected)
    connected.reject()
    assert ended(connected, task) == (4001, "User rejected the request.")
    assert scopes_of(connected) == before


def test_chain_that_is_not_left_ticked_is_a_no(connected: Rig):
    task = asked(connected)
    connected.approve(scopes=["eip155:1", OWN])
    assert ended(connected, task)[0] == 4001
    assert list(scopes_of(connected)) == ["eip155:1", OWN]


def test_right_to_ask_may_be_taken_back_with_the_same_page(connected: Rig):
    task = asked(connected)
    connected.approve(scopes=["eip155:1", POLYGON])
    assert connected.finish(task) is None
    assert list(scopes_of(connected)) == ["eip155:1", POLYGON]
    error = connected.error(connected.s1, INVOKE, call(connected, {"chainId": "0x1"}))
    assert (error.code, error.message) == UNAUTHORIZED


def test_one_waits_at_a_time(connected: Rig):
    task = asked(connected)
    error = connected.error(connected.s2, INVOKE, call(connected, {"chainId": "0x539"}))
    assert error.code == -32002
    assert "'wallet_addEthereumChain' already pending" in error.message
    connected.reject()
    assert ended(connected, task)[0] == 4001


@pytest.mark.parametrize("names", [None, [OWN]], ids=["all", "the right to ask"])
def test_after_a_revoke_nothing_is_added(connected: Rig, names):
    task = asked(connected)
    sessions.revoke_session(dapp_id=connected.dapp.pk, cause=BY_USER, names=names)
    assert ended(connected, task) == UNAUTHORIZED
    assert POLYGON not in scopes_of(connected)


def test_session_ends_when_it_would_have(connected: Rig):
    ends_at = timezone.now().replace(microsecond=0) + timedelta(days=1)
    Session.objects.filter(dapp=connected.dapp).update(expires_at=ends_at)
    task = asked(connected)
    connected.approve()
    assert connected.finish(task) is None
    assert Session.objects.get(dapp=connected.dapp).expires_at == ends_at


def test_signing_is_asked_for_where_it_was_granted(rig: Rig):
    add_key(rig.user)
    rig.create("eip155:1", OWN, accounts={SIGNER})
    task = asked(rig)
    rig.approve(accounts={SIGNER})
    assert rig.finish(task) is None
    assert "personal_sign" in scopes_of(rig)[POLYGON]["methods"]
