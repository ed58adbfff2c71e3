from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import IPv4Address

import pytest
from django.core.exceptions import ValidationError
from hypothesis import given, reject
from hypothesis import strategies as st

from jsonrpc.errors import RpcError
from keys.allowlists import (
    CONTRACT,
    IP,
    METHOD,
    ORIGIN,
    USER_AGENT,
    Allowlists,
    make_allowlists,
    normalise,
)
from keys.models import AllowlistEntry, AllowlistKind, ApiKey, KeyEvent
from keys.services import allowlists as services
from keys.services import (
    create_key,
    get_or_create_customer,
    set_allowlist,
    set_allowlists,
)


def reason(check: object, *arguments: object) -> str:
    """Return the reason for which a check fails, "" if it passes."""
    assert callable(check)
    try:
        check(*arguments)
    except RpcError as error:
        return error.reason
    return ""


@pytest.mark.parametrize(
    ("entry", "origin", "is_allowed"),
    [
        ("https://dapp.example", "https://dapp.example", True),
        ("https://dapp.example", "HTTPS://Dapp.Example", True),
        ("https://dapp.example", "http://dapp.example", False),
        ("https://dapp.example", "https://dapp.example:8443", False),
        ("https://dapp.example", "https://dapp.example.evil.test", False),
        ("https://dapp.example", "https://evil-dapp.example", False),
        ("https://dapp.example:443", "https://dapp.example", True),
        ("https://dapp.example:8443", "https://dapp.example:8443", True),
        ("dapp.example", "http://dapp.example", True),
        ("dapp.example", "chrome-extension://dapp.example", True),
        ("*.dapp.example", "https://a.dapp.example", True),
        ("*.dapp.example", "https://a.b.dapp.example", True),
        ("*.dapp.example", "https://dapp.example", False),
        ("*.dapp.example", "https://adapp.example", False),
        ("localhost:*", "http://localhost:3000", True),
        ("localhost:*", "http://localhost", True),
        ("localhost", "http://localhost:3000", False),
        ("[::1]:*", "http://[::1]:3000", True),
        ("dapp.example", "null", False),
        ("dapp.example", "", False),
        ("dapp.example", "https://dapp.example/x", False),
        ("dapp.example:443", "https://dapp.example", True),
        ("dapp.example:443", "http://dapp.example", False),
        ("dapp.example:80", "http://dapp.example", True),
        ("*.dapp.example:443", "https://a.dapp.example", True),
        ("https://dapp.example:0443", "https://dapp.example", True),
        ("dapp.example:08443", "https://dapp.example:8443", True),
        ("http://127.1:3000", "http://127.0.0.1:3000", True),
        ("0x7f000001", "http://127.0.0.1", True),
        ("2130706433:*", "http://127.0.0.1:3000", True),
        ("0177.0.0.1", "http://127.0.0.1", True),
        ("[0:0:0:0:0:0:0:1]", "http://[::1]", True),
        ("[2001:0DB8::0:1]:443", "https://[2001:db8::1]", True),
        ("[::ffff:192.0.2.7]", "http://[::ffff:c000:207]", True),
        ("app://1", "app://1", True),
    ],
)
def test_origins_are_compared_by_their_parts(
    entry: str, origin: str, is_allowed: bool
) -> None:
    lists = make_allowlists([(ORIGIN, normalise(ORIGIN, entry))])
    refused = reason(lists.require_client, None, origin.encode(), None)
    assert refused == ("" if is_allowed else "origin_not_allowed")


def test_request_without_origin_is_refused_where_origins_are_listed() -> None:
    lists = make_allowlists([(ORIGIN, "https://dapp.example")])
    assert reason(lists.require_client, None, None, None) == "origin_not_allowed"


@pytest.mark.parametrize(
    ("entry", "ip", "is_allowed"),
    [
        ("192.0.2.7", "192.0.2.7", True),
        ("192.0.2.7", "192.0.2.8", False),
        ("192.0.2.7/24", "192.0.2.200", True),
        ("192.0.2.0/24", "::ffff:192.0.2.9", True),
        ("2001:db8::/32", "2001:db8:1::5", True),
        ("2001:db8::/32", "2001:db9::5", False),
        ("2001:db8::/32", "192.0.2.7", False),
        ("::ffff:192.0.2.7", "192.0.2.7", True),
        ("::ffff:192.0.2.7", "::ffff:192.0.2.7", True),
        ("::ffff:192.0.2.7", "192.0.2.8", False),
        ("::FFFF:c000:200/120", "192.0.2.200", True),
        ("::ffff:0:0/96", "192.0.2.200", True),
        ("fe80::1%eth0", "fe80::1", True),
        ("0.0.0.0/0", None, False),
        ("0.0.0.0/0", "unix:", False),
    ],
)
def test_addresses_are_looked_for_in_networks(
    entry: str, ip: str | None, is_allowed: bool
) -> None:
    lists = make_allowlists([(IP, normalise(IP, entry))])
    refused = reason(lists.require_client, ip, None, None)
    assert refused == ("" if is_allowed else "ip_not_allowed")


def test_user_agent_has_to_contain_an_entry() -> None:
    lists = make_allowlists([(USER_AGENT, "MyApp/2"), (USER_AGENT, "viem")])
    for agent, is_allowed in (
        (b"Mozilla (myapp/2.1)", True),
        (b"viem/2", True),
        (b"MyApp/1", False),
        (b"", False),
        (None, False),
    ):
        refused = reason(lists.require_client, None, None, agent)
        assert refused == ("" if is_allowed else "user_agent_not_allowed")


def test_methods_and_contracts_are_looked_up() -> None:
    address = "0x" + "Ab" * 20
    lists = make_allowlists(
        [(METHOD, "eth_chainId"), (CONTRACT, normalise(CONTRACT, address))]
    )
    assert reason(lists.require_method, "eth_chainId") == ""
    assert reason(lists.require_method, "eth_chainid") == "method_not_allowed"
    allowed, other = b"\xab" * 20, b"\xac" * 20
    assert reason(lists.require_contracts, [allowed]) == ""
    assert reason(lists.require_contracts, [allowed, other]) == "contract_not_allowed"


def test_kinds_are_joined_and_empty_ones_allow_everything() -> None:
    lists = make_allowlists([(ORIGIN, "a.example"), (IP, "192.0.2.7")])
    good = b"https://a.example"
    assert reason(lists.require_client, "192.0.2.7", good, None) == ""
    assert reason(lists.require_client, "192.0.2.8", good, None) == "ip_not_allowed"
    assert reason(lists.require_client, "192.0.2.7", b"null", None)
    nothing = make_allowlists([])
    assert reason(nothing.require_client, None, None, None) == ""
    assert reason(nothing.require_method, "any") == ""
    assert reason(nothing.require_contracts, [b"\0" * 20]) == ""


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (ORIGIN, "*"),
        (ORIGIN, "https://*"),
        (ORIGIN, "https://a.*.example"),
        (ORIGIN, "https://a.example/path"),
        (ORIGIN, "https://user@a.example"),
        (ORIGIN, "a b"),
        (ORIGIN, "ünicode.example"),
        (ORIGIN, "dapp.example:99999"),
        (ORIGIN, "dapp.example:0"),
        (ORIGIN, "300.1.1.1"),
        (ORIGIN, "1.2.3.4.5"),
        (ORIGIN, "dapp.1"),
        (ORIGIN, "1_0.1"),
        (ORIGIN, "08.1"),
        (ORIGIN, "0x100000000"),
        (ORIGIN, "[1::2::3]"),
        (ORIGIN, "*.127.0.0.1"),
        (ORIGIN, "*.[::1]"),
        (ORIGIN, "x" * 64 + ".example"),
        (ORIGIN, "wss://dapp.example"),
        (IP, "192.0.2"),
        (IP, "192.0.2.0/33"),
        (METHOD, "eth"),
        (METHOD, "eth_call;drop"),
        (CONTRACT, "0x12"),
        (CONTRACT, "ab" * 20),
        (USER_AGENT, "  "),
        (USER_AGENT, "x" * 201),
    ],
)
def test_entry_that_makes_no_sense_is_refused(kind: str, value: str) -> None:
    with pytest.raises(ValueError, match=r"is not an? |An entry must have"):
        normalise(kind, value)


@pytest.mark.parametrize(
    ("kind", "value", "suggestion"),
    [
        (ORIGIN, "https://a.example/path?x=1", "https://a.example"),
        (ORIGIN, "https://user@a.example", "https://a.example"),
        (ORIGIN, "https:/a.example:8443", "https://a.example:8443"),
        (ORIGIN, "a,example", "a.example"),
        (ORIGIN, "htps://a.example", "https://a.example"),
        (ORIGIN, "Htp://a.example:81/path", "http://a.example:81"),
        (ORIGIN, "https://x*.a.example", "https://*.a.example"),
        (ORIGIN, "https://bücher.example", "https://xn--bcher-kva.example"),
        (ORIGIN, "https://a.example:99999", "https://a.example"),
        (ORIGIN, "[::1]:70000", "[::1]"),
        (ORIGIN, "*.127.0.0.1", "127.0.0.1"),
        (ORIGIN, "wss://a.example/feed", "https://a.example"),
        (ORIGIN, "ws://localhost:3000", "http://localhost:3000"),
        (IP, "192.0.2", "192.0.2.0/24"),
        (IP, "192.0.2.*", "192.0.2.0/24"),
        (IP, "http://192.0.2.7:8545", "192.0.2.7/32"),
        (IP, "[2001:db8::1]", "2001:db8::1/128"),
        (IP, "192.0.2.7/255", "192.0.2.7/32"),
        (METHOD, "eth getBlockByHash", "eth_getBlockByHash"),
        (METHOD, "'eth_call'", "eth_call"),
        (CONTRACT, "AB" * 20, "0x" + "ab" * 20),
        (CONTRACT, "https://scan.example/a/0x" + "ab" * 20, "0x" + "ab" * 20),
    ],
)
def test_malformed_entry_is_rejected_with_a_suggestion(
    kind: str, value: str, suggestion: str
) -> None:
    with pytest.raises(ValueError, match="Did you mean") as caught:
        normalise(kind, value)
    assert str(caught.value).endswith(f"Did you mean {suggestion}?")
    assert normalise(kind, suggestion) == suggestion


PORTS = st.sampled_from(["", ":*", ":0", ":80", ":443", ":0443", ":8443", ":99999"])
LABELS = st.sampled_from(["a", "A", "dapp", "example", "1", "0x7F", "08", "0", "256"])
V4 = st.ip_addresses(v=4).map(str)
V6 = st.ip_addresses(v=6)
MAPPED = V4.map("::ffff:{}".format)
HOSTS = (
    st.lists(LABELS, min_size=1, max_size=4).map(".".join)
    | V4
    | V4.map(lambda text: hex(int(IPv4Address(text))))
    | V6.map(lambda address: f"[{address}]")
    | V6.map(lambda address: f"[{address.exploded.upper()}]")
    | MAPPED.map("[{}]".format)
)
ORIGINS = st.tuples(
    st.sampled_from(["", "http://", "HTTPS://", "app://", "ws://"]),
    st.sampled_from(["", "*."]),
    HOSTS,
    PORTS,
    st.sampled_from(["", "/"]),
).map("".join)
NETWORKS = st.tuples(
    V4 | V6.map(str) | MAPPED | V6.map(lambda address: f"{address.exploded}%eth0"),
    st.integers(0, 128).map("/{}".format) | st.just(""),
).map("".join)
ENTRIES = {
    AllowlistKind.ORIGIN: ORIGINS,
    AllowlistKind.USER_AGENT: st.text(
        st.characters(min_codepoint=31, max_codepoint=127), max_size=20
    ),
    AllowlistKind.IP: NETWORKS,
    AllowlistKind.METHOD: st.from_regex(
        re.compile(r"[A-Za-z0-9]+[_.]\w+", re.ASCII), fullmatch=True
    ),
    AllowlistKind.CONTRACT: st.from_regex(r"0[xX][0-9a-fA-F]{39,40}", fullmatch=True),
}


def admit_a_client(kind: AllowlistKind, lists: Allowlists, stored: str) -> None:
    """Make the request of a client of an entry. Raises: RpcError if it is refused."""
    match kind:
        case AllowlistKind.ORIGIN:
            scheme, _, place = stored.rpartition("://")
            host = re.sub(r"^\*\.", "a.", place.removesuffix(":*"))
            if re.search(r"(^|\.)[0-9]+(:|$)", host) and scheme != "app":
                assert str(IPv4Address(host.partition(":")[0])) in host
            origin = f"{scheme or 'https'}://{host}"
            assert not re.search(
                r"^https.*:443$|^http:.*:80$|:0", origin.split("]")[-1]
            )
            lists.require_client(None, origin.encode(), None)
        case AllowlistKind.USER_AGENT:
            lists.require_client(None, None, f"x {stored} y".encode())
        case AllowlistKind.IP:
            lists.require_client(stored.partition("/")[0], None, None)
        case AllowlistKind.METHOD:
            lists.require_method(stored)
        case AllowlistKind.CONTRACT:
            lists.require_contracts([bytes.fromhex(stored[2:])])


@pytest.mark.parametrize("kind", AllowlistKind)
@given(data=st.data())
def test_each_accepted_entry_admits_a_client(
    kind: AllowlistKind, data: st.DataObject
) -> None:
    entry = data.draw(ENTRIES[kind])
    try:
        stored = normalise(kind, entry)
    except ValueError:
        reject()
    assert normalise(kind, stored) == stored
    for value in (entry.strip(), stored):
        admit_a_client(kind, make_allowlists([(kind, value)]), stored)


def test_stored_entry_that_is_no_longer_accepted_rejects_all_origins() -> None:
    for value in ("dapp.example:99999", "300.1.1.1", "*.127.0.0.1"):
        lists = make_allowlists([(ORIGIN, value)])
        for origin in (b"https://dapp.example", b"null", value.encode(), None):
            refused = reason(lists.require_client, None, origin, None)
            assert refused == "origin_not_allowed"


def test_schemes_of_extensions_and_programs_are_origins() -> None:
    for scheme in ("chrome-extension", "moz-extension", "capacitor", "app", "ipfs"):
        assert normalise(ORIGIN, f"{scheme}://abc") == f"{scheme}://abc"


def test_entry_without_a_likely_correction_is_rejected_with_an_example() -> None:
    for kind, value, example in (
        (ORIGIN, "*", "such as https://dapp.example,"),
        (IP, "300.1.1.1", "such as 192.0.2.7, or"),
        (CONTRACT, "0x12", "Enter 0x and 40 hexadecimal digits."),
    ):
        with pytest.raises(ValueError, match=example):
            normalise(kind, value)


@pytest.fixture
def api_key(db: None) -> ApiKey:
    return create_key(owner=get_or_create_customer(email="owner@example.org"))


def values(api_key: ApiKey) -> list[str]:
    return sorted(api_key.allowlist.values_list("value", flat=True))


def test_list_is_replaced_as_a_whole_and_the_event_says_what_is_new(
    api_key: ApiKey,
) -> None:
    set_allowlist(api_key=api_key, kind=IP, values=["192.0.2.7"])
    set_allowlist(api_key=api_key, kind=ORIGIN, values=["A.example", "b.example"])
    set_allowlist(
        api_key=api_key, kind=ORIGIN, values=["b.example", "c.example", "C.example/"]
    )
    assert values(api_key) == ["192.0.2.7/32", "b.example", "c.example"]
    assert KeyEvent.objects.latest("id").data == {
        "kind": "origin",
        "added": ["c.example"],
        "removed": ["a.example"],
    }
    count = KeyEvent.objects.count()
    set_allowlist(api_key=api_key, kind=IP, values=[" 192.0.2.7/32 "])
    assert KeyEvent.objects.count() == count


def test_list_holds_thirty_entries(api_key: ApiKey) -> None:
    set_allowlist(api_key=api_key, kind=IP, values=[f"10.0.0.{n}" for n in range(30)])
    with pytest.raises(ValidationError, match="31 entries are too many"):
        set_allowlist(
            api_key=api_key, kind=IP, values=[f"10.0.1.{n}" for n in range(31)]
        )
    assert "10.0.0.0/32" in values(api_key)


def test_unknown_method_is_rejected_with_the_most_similar_one(api_key: ApiKey) -> None:
    with pytest.raises(ValidationError) as caught:
        set_allowlist(
            api_key=api_key,
            kind=METHOD,
            values=["eth_call", "eth_getBlockbyHash", "eth_blocknumbr", "foo_zzzzzz"],
        )
    assert caught.value.messages == [
        "Unknown method: eth_getBlockbyHash. Did you mean eth_getBlockByHash?",
        "Unknown method: eth_blocknumbr. Did you mean eth_blockNumber?",
        "Unknown method: foo_zzzzzz.",
    ]
    assert values(api_key) == []


def test_few_of_many_unknown_methods_are_compared_with_the_served_ones(
    api_key: ApiKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared = []

    def similar(name: str, served: Iterable[str]) -> str:
        compared.append(name)
        return ""

    monkeypatch.setattr(services, "similar_method", similar)
    with pytest.raises(ValidationError) as caught:
        set_allowlist(
            api_key=api_key,
            kind=METHOD,
            values=[f"eth_unknown{number}" for number in range(300)],
        )
    assert len(compared) == services.MAX_SUGGESTIONS
    messages = caught.value.message_dict["values"]
    assert messages[services.MAX_SUGGESTIONS :] == [
        f"{300 - services.MAX_SUGGESTIONS} more names are unknown.",
        "300 entries are too many: a list has at most 30.",
    ]


def test_method_that_is_no_longer_served_can_stay_on_its_list(api_key: ApiKey) -> None:
    AllowlistEntry.objects.create(api_key=api_key, kind=METHOD, value="eth_former")
    set_allowlist(api_key=api_key, kind=METHOD, values=["eth_former", "eth_call"])
    assert values(api_key) == ["eth_call", "eth_former"]


def test_all_lists_are_replaced_at_once_or_not_at_all(api_key: ApiKey) -> None:
    wrong = {
        AllowlistKind.ORIGIN: ["a.example", "https://b.example/path"],
        AllowlistKind.IP: ["192.0.2.7"],
        AllowlistKind.METHOD: ["eth_cal"],
    }
    with pytest.raises(ValidationError) as caught:
        set_allowlists(api_key=api_key, lists=wrong)
    assert caught.value.message_dict == {
        "origin": [
            "'https://b.example/path' is not an origin. Did you mean https://b.example?"
        ],
        "method": ["Unknown method: eth_cal. Did you mean eth_call?"],
    }
    assert not AllowlistEntry.objects.exists()
    right = {AllowlistKind.ORIGIN: ["a.example"], AllowlistKind.IP: ["192.0.2.7"]}
    set_allowlists(api_key=api_key, lists=right)
    assert values(api_key) == ["192.0.2.7/32", "a.example"]
    changed = KeyEvent.objects.filter(type="allowlist.changed")
    assert {event.data["kind"] for event in changed} == {"origin", "ip"}


def test_wrong_kind_or_entry_changes_nothing(api_key: ApiKey) -> None:
    with pytest.raises(ValidationError, match="Unknown kind of allowlist: 'colour'"):
        set_allowlist(api_key=api_key, kind="colour", values=["red"])
    with pytest.raises(ValidationError, match="is not an origin"):
        set_allowlist(api_key=api_key, kind=ORIGIN, values=["a.example", "*"])
    assert not AllowlistEntry.objects.exists()
