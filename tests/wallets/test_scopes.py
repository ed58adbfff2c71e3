from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wallets import caip, scopes
from wallets.caip import Address
from wallets.scopes import RequestedScope, ScopeObject, ShapeError

A1 = Address("eip155", "0x5cfe73b6021e818b776b421b1c4db2474086a7e1")
A2 = Address("eip155", "0x" + "a2" * 20)
M0 = {"methods": [], "notifications": []}


def merged(*objects):
    """Return the merged scopes of a request's scope objects."""
    return scopes.merge([scopes.decode_scopes(value) for value in objects])


def wanting(*methods, **members):
    return {"methods": list(methods), "notifications": [], **members}


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ("x", ""),
        (None, ""),
        ([], ""),
        (5, ""),
        ({"eip155:1": "x"}, "eip155:1"),
        ({"eip155:1": []}, "eip155:1"),
        ({"eip155:1": None}, "eip155:1"),
        ({"eip155:1": {"notifications": []}}, "eip155:1.methods"),
        ({"eip155:1": {"methods": []}}, "eip155:1.notifications"),
        ({"eip155:1": {**M0, "methods": "x"}}, "eip155:1.methods"),
        ({"eip155:1": {**M0, "methods": None}}, "eip155:1.methods"),
        ({"eip155:1": {**M0, "methods": ["a", 1]}}, "eip155:1.methods[1]"),
        ({"eip155:1": {**M0, "methods": [{"foo": "bar"}]}}, "eip155:1.methods[0]"),
        ({"eip155:1": {**M0, "notifications": [None]}}, "eip155:1.notifications[0]"),
        ({"eip155:1": {**M0, "accounts": None}}, "eip155:1.accounts"),
        ({"eip155": {**M0, "references": "1"}}, "eip155.references"),
        ({"eip155": {**M0, "references": [1]}}, "eip155.references[0]"),
        ({"nonsense!": "x"}, "nonsense!"),
        ({"eip155:1": {**M0, "methods": ["m"] * 257}}, "eip155:1.methods"),
        ({"eip155:1": {**M0, "methods": ["m" * 129]}}, "eip155:1.methods[0]"),
        ({"k" * 1000: "x"}, "k" * 41 + "…"),
    ],
)
def test_wrong_types_are_refused_with_their_place(value, path):
    with pytest.raises(ShapeError) as raised:
        scopes.decode_scopes(value)
    assert raised.value.path == path


def test_lists_at_their_limits_are_taken():
    value = {"eip155:1": {**M0, "methods": ["m" * 128] * 256}}
    assert merged(value)["eip155:1"].methods == ("m" * 128,)


@pytest.mark.parametrize(
    ("key", "members"),
    [
        ("foobar!", {}),
        ("eip155", {}),
        ("eip155", {"references": []}),
        ("wallet", {"references": []}),
        ("eip155", {"references": ["1", "@"]}),
        ("eip155", {"references": ["1\n"]}),
        ("eip155:1", {"references": []}),
        ("eip155:1", {"references": ["137"]}),
        ("eip155:1", {"methods": [""]}),
        ("eip155:1", {"methods": ["eth_call", "  "]}),
        ("eip155:1", {"notifications": [""]}),
        ("eip155:1", {"foo": 1}),
        ("eip155:1", {"sessionId": "x"}),
        ("EIP155:1", {}),
        ("eip155:1\n", {}),
        ("ei:1", {}),
        ("eip155:", {}),
        ("not a namespace", {}),
        ("eip155:" + "1" * 33, {}),
        ("x" * 9, {"references": ["1"]}),
    ],
)
def test_what_makes_no_sense_is_left_out_whole(key, members):
    assert merged({key: {**M0, **members}}) == {}
    assert list(merged({key: {**M0, **members}, "eip155:2": M0})) == ["eip155:2"]


def test_obsolete_members_are_ignored():
    value = {"eip155:1": {**M0, "rpcDocuments": [], "rpcEndpoints": []}}
    assert merged(value) == {"eip155:1": ScopeObject()}


def test_references_become_scopes_of_their_own():
    value = {"eip155": wanting("eth_call", references=["1", "137"])}
    assert merged(value) == {
        "eip155:1": ScopeObject(("eth_call",)),
        "eip155:137": ScopeObject(("eth_call",)),
    }
    assert list(merged({"wallet": {**M0, "references": ["eip155"]}})) == [
        "wallet:eip155"
    ]


def test_wallet_needs_no_references():
    assert list(merged({"wallet": M0})) == ["wallet"]


def test_same_scope_twice_is_the_union_in_the_order_of_first_sight():
    value = {
        "eip155": wanting("b", "a", references=["1", "137"]),
        "eip155:1": wanting("c", "a"),
    }
    assert merged(value) == {
        "eip155:1": ScopeObject(("b", "a", "c")),
        "eip155:137": ScopeObject(("b", "a")),
    }


def test_required_and_optional_scopes_are_merged():
    required = {"eip155:1": {**wanting("a"), "notifications": ["x"]}}
    optional = {"eip155:137": M0, "eip155:1": wanting("b", accounts=["c:d:e"])}
    assert merged(required, optional) == {
        "eip155:1": ScopeObject(("a", "b"), ("x",), ("c:d:e",)),
        "eip155:137": ScopeObject(),
    }


def test_number_of_scopes_is_bounded_after_flattening():
    numbers = [str(n) for n in range(1, 65)]
    assert len(merged({"eip155": {**M0, "references": numbers}})) == 64
    with pytest.raises(ShapeError, match="more than 64 scopes"):
        merged({"eip155": {**M0, "references": numbers}}, {"eip155:65": M0})


def test_addresses_are_pooled_whatever_chain_they_are_named_on():
    wanted = merged(
        {
            "eip155:1": {
                **M0,
                "accounts": [
                    "garbage",
                    f"{A1.address}@eip155:1",
                    f"eip155:0:0x{A2.address[2:].upper()}",
                    f"eip155:137:{A1.address}",
                    f"eip155:01:{A1.address}",
                ],
            },
            "wallet:eip155": {**M0, "accounts": [f"wallet:eip155:{A2.address}"]},
        }
    )
    assert scopes.requested_addresses(wanted) == (A2, A1)


def test_each_scope_has_the_addresses_under_its_own_name():
    given_scopes = {
        name: ScopeObject() for name in ("eip155:1", "eip155:137", "wallet")
    } | {"wallet:eip155": ScopeObject(("m",), accounts=("old",))}
    granted = scopes.with_addresses(given_scopes, [A2, Address("solana", "S"), A1])
    assert {name: scope.accounts for name, scope in granted.items()} == {
        "eip155:1": (f"eip155:1:{A2.address}", f"eip155:1:{A1.address}"),
        "eip155:137": (f"eip155:137:{A2.address}", f"eip155:137:{A1.address}"),
        "wallet": (),
        "wallet:eip155": (
            f"wallet:eip155:{A2.address}",
            f"wallet:eip155:{A1.address}",
        ),
    }
    assert granted["wallet:eip155"].methods == ("m",)


def test_session_ends_with_its_last_chain_or_account():
    granted = scopes.with_addresses(
        {name: ScopeObject() for name in ("eip155:1", "wallet:eip155", "wallet")}, [A1]
    )
    assert list(scopes.without(granted, ["wallet"])) == ["eip155:1", "wallet:eip155"]
    assert scopes.without(granted, ["eip155:999"]) == granted
    assert scopes.without(granted, ["eip155:1"]) == {}
    assert scopes.drop_unusable(scopes.with_addresses(granted, [])) == {}


def test_stored_scopes_keep_their_order():
    granted = scopes.with_addresses(
        {"eip155:137": ScopeObject(("b", "a")), "eip155:1": ScopeObject((), ("n",))},
        [A1],
    )
    again = scopes.from_stored(scopes.to_stored(granted))
    assert list(again.items()) == list(granted.items())
    assert set(scopes.to_json(granted)["eip155:1"]) == {
        "accounts",
        "methods",
        "notifications",
    }


NAMES = st.sampled_from(
    ["eip155:1", "eip155:137", "wallet", "wallet:eip155", "eip155", "x", "EIP155:1"]
)
STRINGS = st.lists(st.sampled_from(["", " ", "a", "b", "c"]), max_size=4)
REQUESTED = st.dictionaries(
    NAMES,
    st.builds(
        RequestedScope,
        st.builds(ScopeObject, *[STRINGS.map(tuple)] * 3),
        st.none() | st.lists(st.sampled_from(["1", "137", "@"]), max_size=3).map(tuple),
        st.booleans(),
    ),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            NAMES | st.sampled_from(["methods", "notifications", "references"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


def members(found):
    return {
        name: tuple(map(set, (scope.methods, scope.notifications, scope.accounts)))
        for name, scope in found.items()
    }


@given(JSON)
def test_any_json_is_read_or_refused_with_a_reason(value):
    try:
        found = scopes.merge([scopes.decode_scopes(value)])
    except ShapeError as error:
        assert str(error)
        return
    for name, scope in found.items():
        assert str(caip.parse_scope(name)) == name
        assert all(text.strip() for text in scope.methods + scope.notifications)


@given(REQUESTED, REQUESTED)
def test_merging_is_the_same_in_either_order_but_for_the_order(one, other):
    assert members(scopes.merge([one, other])) == members(scopes.merge([other, one]))


@given(REQUESTED)
def test_merging_with_itself_adds_nothing(requested):
    assert scopes.merge([requested, requested]) == scopes.merge([requested])


@given(REQUESTED)
def test_merged_scopes_name_a_chain_or_the_wallet_and_nothing_twice(requested):
    for name, scope in scopes.merge([requested]).items():
        assert name == "wallet" or caip.parse_scope(name).reference is not None
        for texts in (scope.methods, scope.notifications, scope.accounts):
            assert len(set(texts)) == len(texts)
