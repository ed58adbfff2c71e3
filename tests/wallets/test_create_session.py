"""Cases 20–72 of the specification's list: session requests and their results."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.support.wallet import A1, A2, M0, Rig
from wallets import caip
from wallets.models import ConsentRequest

ALL_METHODS = [
    "web3_clientVersion",
    "eth_subscribe",
    "eth_unsubscribe",
    "eth_blockNumber",
    "eth_chainId",
    "eth_getBlockByHash",
]
ONE = {"optionalScopes": {"eip155:1": M0}}


def asking(**scopes):
    return {"optionalScopes": {name.replace("_", ":"): v for name, v in scopes.items()}}


def granted(rig: Rig, params):
    """Make a request, and grant all of it."""
    task = rig.start(rig.s1, params)
    rig.approve()
    return rig.finish(task)


def scope_of(rig: Rig, **members):
    """Return the result of a request for one chain."""
    params = {"optionalScopes": {"eip155:1": {**M0, **members}}}
    return granted(rig, params)["sessionScopes"]["eip155:1"]


@pytest.mark.parametrize(
    ("params", "param", "path"),
    [
        (["x"], "", ""),
        ([], "", ""),
        (None, "", ""),
        ("x", "", ""),
        ({"optionalScopes": "x"}, "optionalScopes", ""),
        ({"optionalScopes": None}, "optionalScopes", ""),
        ({"optionalScopes": []}, "optionalScopes", ""),
        ({"requiredScopes": None}, "requiredScopes", ""),
        ({**ONE, "sessionProperties": []}, "sessionProperties", ""),
        ({**ONE, "sessionProperties": "x"}, "sessionProperties", ""),
        ({**ONE, "sessionProperties": None}, "sessionProperties", ""),
        (asking(eip155_1={"notifications": []}), "optionalScopes", "eip155:1.methods"),
        (asking(eip155_1={"methods": []}), "optionalScopes", "eip155:1.notifications"),
        (
            asking(eip155_1={**M0, "methods": [{"foo": "bar"}]}),
            "optionalScopes",
            "eip155:1.methods[0]",
        ),
        (asking(eip155_1={**M0, "methods": "x"}), "optionalScopes", "eip155:1.methods"),
        (asking(eip155_1="x"), "optionalScopes", "eip155:1"),
        (asking(eip155_1=[]), "optionalScopes", "eip155:1"),
        (asking(eip155_1=None), "optionalScopes", "eip155:1"),
    ],
)
def test_wrong_types_are_refused_and_the_user_not_asked(rig: Rig, params, param, path):
    error = rig.error(rig.s1, "wallet_createSession", params)
    assert (error.code, error.message) == (-32602, "Invalid method parameter(s).")
    assert [(fault["param"], fault["path"]) for fault in error.data] == [(param, path)]
    assert error.data[0]["message"]
    assert not ConsentRequest.objects.filter(dapp=rig.dapp).exists()


@pytest.mark.parametrize("name", ["eip155:1", "eip155:999"])
def test_empty_properties_are_refused_before_the_scopes_are_looked_at(rig: Rig, name):
    params = {"optionalScopes": {name: M0}, "sessionProperties": {}}
    error = rig.error(rig.s1, "wallet_createSession", params)
    assert (error.code, error.message) == (5302, "Invalid sessionProperties requested")


@pytest.mark.parametrize(
    "scopes",
    [
        {},
        {"eip155:10124": M0},
        {"foobar": {"methods": ["m"], "notifications": []}},
        {"eip155": M0},
        {"eip155": {**M0, "references": []}},
        {"eip155": {**M0, "references": ["1", "@"]}},
        {"eip155:1": {**M0, "references": []}},
        {"eip155:1": {**M0, "references": ["137"]}},
        {"eip155:1": {**M0, "methods": [""]}},
        {"eip155:1": {**M0, "methods": ["  "]}},
        {"eip155:1": {**M0, "notifications": [""]}},
        {"eip155:1": {**M0, "foo": 1}},
        {"eip155:01": M0},
        {"eip155:1e1": M0},
        {"eip155:0": M0},
        {"EIP155:1": M0},
        {"eip155:1\n": M0},
        {"ei:1": M0},
        {"eip155:": M0},
        {"not a namespace": M0},
        {"eip155:" + "1" * 33: M0},
        {"x" * 9: M0},
        {"wallet:solana": M0},
        {"wallet:wallet": M0},
        {"solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp": M0},
        {"\ud800": M0, "eip155:\0": M0},
    ],
)
def test_nothing_supported_is_reported_and_the_user_not_asked(rig: Rig, scopes):
    error = rig.error(rig.s1, "wallet_createSession", {"optionalScopes": scopes})
    assert (error.code, error.message) == (5100, "Requested scopes are not supported")
    assert not ConsentRequest.objects.filter(dapp=rig.dapp).exists()


def test_nothing_asked_for_is_nothing_supported(rig: Rig):
    assert rig.code(rig.s1, "wallet_createSession", {}) == 5100


def test_unsupported_scopes_are_left_out(rig: Rig):
    found = rig.create("foobar", "eip155:999", "eip155:1")
    assert list(found["sessionScopes"]) == ["eip155:1"]
    assert list(rig.session()["sessionScopes"]) == ["eip155:1"]


def test_references_are_flattened(rig: Rig):
    asked = {"eip155": {**M0, "references": ["1", "137"]}}
    found = granted(rig, {"optionalScopes": asked})
    assert list(found["sessionScopes"]) == ["eip155:1", "eip155:137"]
    for scope in found["sessionScopes"].values():
        assert list(scope) == ["accounts", "methods", "notifications"]


def test_obsolete_members_are_accepted_and_not_answered(rig: Rig):
    assert set(scope_of(rig, rpcDocuments=[], rpcEndpoints=[])) == {
        "accounts",
        "methods",
        "notifications",
    }


def test_scope_that_is_named_twice_is_merged(rig: Rig):
    asked = {
        "eip155": {**M0, "references": ["1", "137"], "methods": ["eth_blockNumber"]},
        "eip155:1": {**M0, "methods": ["eth_chainId"]},
    }
    found = granted(rig, {"optionalScopes": asked})["sessionScopes"]
    assert found["eip155:1"]["methods"] == ["eth_blockNumber", "eth_chainId"]
    assert found["eip155:137"]["methods"] == ["eth_blockNumber"]


def test_required_scopes_are_merged_with_the_optional_ones(rig: Rig):
    found = granted(
        rig,
        {
            "requiredScopes": {"eip155:1": {**M0, "methods": ["eth_chainId"]}},
            "optionalScopes": {
                "eip155:137": M0,
                "eip155:1": {**M0, "methods": ["eth_blockNumber", "eth_chainId"]},
            },
        },
    )["sessionScopes"]
    assert list(found) == ["eip155:1", "eip155:137"]
    assert found["eip155:1"]["methods"] == ["eth_blockNumber", "eth_chainId"]


def test_required_is_not_required(rig: Rig):
    params = {"requiredScopes": {"eip155:999": M0}, "optionalScopes": {"eip155:1": M0}}
    assert list(granted(rig, params)["sessionScopes"]) == ["eip155:1"]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (["eth_chainId", "nope"], ["eth_chainId"]),
        (["eth_chainId", "eth_chainId"], ["eth_chainId"]),
        (["eth_accounts", "eth_chainId"], ["eth_chainId"]),
    ],
)
def test_methods_are_granted_as_far_as_they_are_known(rig: Rig, asked, expected):
    assert scope_of(rig, methods=asked)["methods"] == expected


@pytest.mark.parametrize("asked", [[], ["nope"]])
def test_request_without_known_methods_gets_all_in_order(rig: Rig, asked):
    found = scope_of(rig, methods=asked)
    # Other methods of the chain are between them.
    assert [name for name in found["methods"] if name in ALL_METHODS] == ALL_METHODS
    traces = ("debug_trace", "trace_")
    assert not [m for m in found["methods"] if m.startswith(traces)]
    assert found["notifications"] == ["eth_subscription"]


def test_unknown_notifications_are_left_out(rig: Rig):
    asked = ["accountsChanged", "eth_subscription"]
    assert scope_of(rig, notifications=asked)["notifications"] == ["eth_subscription"]


def test_scopes_of_the_wallet_itself(rig: Rig):
    found = rig.create("wallet", "wallet:eip155", "eip155:1")["sessionScopes"]
    assert found["wallet"] == {"accounts": [], "methods": [], "notifications": []}
    assert found["wallet:eip155"] == {
        "accounts": [f"wallet:eip155:{A1}"],
        "methods": ["wallet_addEthereumChain"],
        "notifications": [],
    }
    asked = {"wallet": {**M0, "references": ["eip155"]}, "eip155:1": M0}
    again = granted(rig, {"optionalScopes": asked})
    assert "wallet:eip155" in again["sessionScopes"]


def test_unknown_properties_are_left_out(rig: Rig):
    found = granted(rig, {**ONE, "sessionProperties": {"expiry": "date", "foo": "bar"}})
    assert found["sessionProperties"] == {}


def test_expiry_is_granted_and_shown(rig: Rig):
    moment = (datetime.now(UTC) + timedelta(days=1)).replace(microsecond=0)
    expiry = f"{moment:%Y-%m-%dT%H:%M:%SZ}"
    found = granted(rig, {**ONE, "sessionProperties": {"expiry": moment.isoformat()}})
    assert found["sessionProperties"] == {"expiry": expiry}
    assert rig.session() == found


def test_unknown_parameters_are_ignored(rig: Rig):
    extra = {"sessionId": "0xdead", "scopedProperties": 5, "scopes": {"x": {}}}
    assert list(granted(rig, {**ONE, **extra})) == [
        "sessionScopes",
        "sessionProperties",
    ]


@pytest.mark.parametrize(
    ("accounts", "expected"),
    [
        ([], A1),
        ([f"eip155:1:0x{A2[2:].upper()}"], A2),
        (["eip155:1:0x" + "9" * 40], A1),
        ([f"eip155:0:{A2}"], A2),
        ([f"eip155:137:{A2}"], A2),
        (["garbage", f"{A2}@eip155:1"], A1),
    ],
)
def test_wished_for_account_is_ticked_on_all_chains(rig: Rig, accounts, expected):
    asked = {"eip155:1": {**M0, "accounts": accounts}, "eip155:137": M0}
    found = granted(rig, {"optionalScopes": asked})["sessionScopes"]
    assert {name: scope["accounts"] for name, scope in found.items()} == {
        "eip155:1": [f"eip155:1:{expected}"],
        "eip155:137": [f"eip155:137:{expected}"],
    }


def test_both_accounts_are_shown_with_the_primary_first(rig: Rig):
    found = rig.create("eip155:137", "eip155:1", "wallet:eip155", accounts={A2, A1})
    for name, scope in found["sessionScopes"].items():
        assert scope["accounts"] == [f"{name}:{A1}", f"{name}:{A2}"]
        for account in scope["accounts"]:
            assert str(caip.parse_account_id(account).chain_id) == name
