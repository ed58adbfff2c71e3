from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wallets import proposals, scopes
from wallets.caip import Address
from wallets.errors import ScopesNotSupported
from wallets.permissions import CHAIN_METHODS, SUBSCRIPTION, Group, group_of
from wallets.proposals import Choice, Known, NothingChosen, Proposal
from wallets.scopes import ScopeObject

A1, A2, A3 = (Address("eip155", "0x" + digit * 40) for digit in "123")
READS = (
    "eth_subscribe",
    "eth_unsubscribe",
    "eth_blockNumber",
    "eth_call",
    "eth_chainId",
)
CHAIN = Known(READS, (SUBSCRIPTION,), ("debug_traceBlockByHash",))
OFFER = {
    "eip155:1": CHAIN,
    "eip155:137": CHAIN,
    "eip155:1337": CHAIN,
    "wallet:eip155": Known(("wallet_addEthereumChain",)),
    "wallet": Known(),
}
NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)


def planned(methods=(), notifications=(), scope="eip155:1"):
    """Return the grantable part of a request for one scope."""
    wanted = {scope: ScopeObject(tuple(methods), tuple(notifications))}
    return proposals.propose(wanted, OFFER).scopes[scope]


def granted(*names, own=(A1,)):
    return scopes.with_addresses({n: planned(scope=n) for n in names}, own)


@pytest.mark.parametrize(
    "name",
    [
        "eip155:999",
        "eip155:01",
        "eip155:1e1",
        "eip155:0",
        "foobar:1",
        "wallet:solana",
        "wallet:wallet",
        "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp",
    ],
)
def test_scope_that_is_not_served_is_left_out(name):
    with pytest.raises(ScopesNotSupported):
        proposals.propose({name: ScopeObject()}, OFFER)
    both = proposals.propose({name: ScopeObject(), "eip155:1": ScopeObject()}, OFFER)
    assert list(both.scopes) == ["eip155:1"]
    assert both.unsupported == (name,)


def test_nothing_wanted_is_nothing_supported():
    with pytest.raises(ScopesNotSupported):
        proposals.propose({}, OFFER)


def test_empty_request_gets_everything_in_order():
    assert planned() == ScopeObject(READS, (SUBSCRIPTION,))


def test_requested_methods_are_given_in_our_order():
    asked = ["eth_chainId", "nope", "eth_call", "eth_chainId", "eth_accounts"]
    assert planned(asked).methods == ("eth_call", "eth_chainId")


def test_request_of_unknown_names_gets_everything():
    assert planned(["nope"]).methods == READS
    assert planned([], ["accountsChanged"]).notifications == (SUBSCRIPTION,)


def test_unknown_notifications_are_left_out():
    found = planned([], ["accountsChanged", SUBSCRIPTION])
    assert found.notifications == (SUBSCRIPTION,)


def test_traces_are_granted_if_requested():
    asked = ["debug_traceBlockByHash", "eth_call"]
    assert planned(asked).methods == ("eth_call", "debug_traceBlockByHash")


def test_own_scope_of_the_wallet_has_no_methods():
    assert planned(scope="wallet") == ScopeObject()


def test_what_the_dapp_may_do_already_comes_first_and_is_added_to():
    existing = scopes.with_addresses(
        {"eip155:1": planned(["eth_chainId"]), "eip155:1337": planned(["eth_call"])},
        [A1],
    )
    wish = proposals.propose(
        {"eip155:137": ScopeObject(), "eip155:1": ScopeObject(("eth_call",))}, OFFER
    )
    both = proposals.asked_scopes(existing, wish, OFFER)
    assert list(both) == ["eip155:1", "eip155:1337", "eip155:137"]
    assert both["eip155:1"].methods == ("eth_call", "eth_chainId")
    assert both["eip155:1"].accounts == ()


def test_what_the_wallet_no_longer_does_is_not_offered_again():
    existing = {
        "eip155:5": ScopeObject(("eth_call",)),
        "eip155:1": ScopeObject(("gone",)),
    }
    both = proposals.asked_scopes(
        existing, Proposal({"eip155:1": ScopeObject()}), OFFER
    )
    assert both == {"eip155:1": ScopeObject()}


def test_favourite_is_ticked_unless_another_is_wished_for():
    unknown = Address("eip155", "0x" + "9" * 40)
    assert proposals.preselected({}, [], [A1, A2]) == (A1,)
    assert proposals.preselected({}, [A2], [A1, A2]) == (A2,)
    assert proposals.preselected({}, [unknown], [A1, A2]) == (A1,)
    assert proposals.preselected({}, [A2, A1], [A1, A2]) == (A1, A2)
    assert proposals.preselected({}, [], []) == ()


def test_accounts_in_use_stay_ticked():
    existing = granted("eip155:1", own=(A3,))
    assert proposals.preselected(existing, [A2], [A1, A2, A3]) == (A2, A3)
    assert proposals.preselected(existing, [], [A1, A2, A3]) == (A3,)


def test_one_of_each_namespace_is_ticked():
    other, another = Address("solana", "S"), Address("solana", "T")
    assert proposals.preselected({}, [A2], [A1, other, A2, another]) == (other, A2)


def test_grant_is_what_was_left_ticked():
    offered = {
        "eip155:1": planned(),
        "eip155:137": planned(),
        "wallet": planned(scope="wallet"),
    }
    choice = Choice(frozenset({"eip155:1", "wallet"}), addresses=frozenset({A2, A1}))
    session = proposals.grant(offered, choice, [A1, A2, A3])
    assert list(session) == ["eip155:1", "wallet"]
    assert session["eip155:1"].accounts == (
        f"eip155:1:{A1.address}",
        f"eip155:1:{A2.address}",
    )
    assert session["wallet"].accounts == ()


def test_groups_that_are_unticked_take_their_methods_along():
    choice = Choice(frozenset({"eip155:1"}), frozenset({Group.READ}), frozenset({A1}))
    session = proposals.grant({"eip155:1": planned()}, choice, [A1])
    assert session["eip155:1"].methods == ("eth_blockNumber", "eth_call", "eth_chainId")
    assert session["eip155:1"].notifications == ()


@pytest.mark.parametrize(
    ("names", "addresses"),
    [
        (set(), {A1}),
        ({"eip155:1"}, set()),
        ({"eip155:999"}, {A1}),
        ({"eip155:1"}, {A3}),
        ({"wallet"}, {A1}),
    ],
)
def test_choice_that_makes_no_session_is_refused(names, addresses):
    choice = Choice(frozenset(names), addresses=frozenset(addresses))
    offered = {"eip155:1": planned(), "wallet": planned(scope="wallet")}
    with pytest.raises(NothingChosen):
        proposals.grant(offered, choice, [A1, A2])


def test_edit_keeps_the_methods_of_a_network_that_is_hidden():
    session = granted("eip155:1", "eip155:137")
    offer = {name: known for name, known in OFFER.items() if name != "eip155:137"}
    choice = Choice(frozenset(session), frozenset({Group.READ}), frozenset({A1, A2}))
    changed = proposals.edited(session, offer, choice, [A1, A2])
    assert changed["eip155:137"].methods == changed["eip155:1"].methods == READS[2:]
    assert len(changed["eip155:137"].accounts) == 2


def test_wallet_alone_needs_no_account():
    choice = Choice(frozenset({"wallet"}))
    assert list(proposals.grant({"wallet": ScopeObject()}, choice, [A1])) == ["wallet"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-03-04T05:06:08Z", NOW + timedelta(seconds=1)),
        ("2026-03-04t06:06:08.999z", NOW + timedelta(hours=1, seconds=1)),
        ("2026-03-04T07:06:08+02:00", NOW + timedelta(seconds=1)),
        ("9999-12-31T23:59:59Z", NOW + proposals.MAX_SESSION_AGE),
        ("2026-03-04T05:06:07Z", None),
        ("2026-03-04T05:06:07.9Z", None),
        ("2020-01-01T00:00:00Z", None),
        ("2026-13-04T05:06:08Z", None),
        ("9999-12-31T23:59:59-23:59", None),
        ("2026-03-04T05:06:08", None),
        ("2026-03-04 05:06:08Z", None),
        ("2027-03-04", None),
        ("date", None),
        (1_800_000_000, None),
        (None, None),
    ],
)
def test_expiry_is_a_moment_in_the_future_or_nothing(text, expected):
    assert proposals.wanted_expiry({"expiry": text, "foo": "bar"}, NOW) == expected


def test_only_the_expiry_is_a_property():
    assert proposals.properties_json(None) == {}
    assert proposals.properties_json(NOW) == {"expiry": "2026-03-04T05:06:07Z"}


def test_every_method_stands_in_one_list_only():
    assert len(set(CHAIN_METHODS)) == len(CHAIN_METHODS)
    assert group_of("personal_sign") == Group.SIGN
    assert group_of("eth_sendRawTransaction") == Group.SEND
    assert group_of("debug_traceBlockByHash") == Group.TRACE


METHODS = st.lists(st.sampled_from([*READS, "nope", "debug_traceBlockByHash"]))
WANTED = st.dictionaries(
    st.sampled_from([*OFFER, "eip155:5", "solana:x"]),
    st.builds(ScopeObject, METHODS.map(tuple)),
)


@given(
    WANTED,
    WANTED,
    st.sets(st.sampled_from(list(Group))),
    st.sets(st.sampled_from([A1, A2])),
)
def test_nothing_is_granted_that_is_not_offered_and_ticked(old, new, groups, addresses):
    """For any request and choice: methods ⊆ known ∩ ticked, accounts ⊆ ticked."""
    try:
        wish = proposals.propose(new, OFFER)
        asked = proposals.asked_scopes(old, wish, OFFER)
        choice = Choice(frozenset(wish.scopes), frozenset(groups), frozenset(addresses))
        session = proposals.grant(asked, choice, [A1, A2])
    except (ScopesNotSupported, NothingChosen):
        return
    for name, scope in session.items():
        assert name in new
        known = OFFER[name]
        assert set(scope.methods) <= set(known.all_methods)
        assert {group_of(method) for method in scope.methods} <= groups
        assert list(scope.methods) == [
            m for m in known.all_methods if m in scope.methods
        ]
        if "debug_traceBlockByHash" in scope.methods:
            wanted = new[name].methods + old.get(name, ScopeObject()).methods
            assert "debug_traceBlockByHash" in wanted
        if name != "wallet":
            assert scope.accounts == tuple(
                f"{name}:{a.address}" for a in (A1, A2) if a in addresses
            )
