"""Login messages (ERC-4361), and manipulated ones."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from abi.addresses import with_checksum
from tests.support.signing import SIGNER
from wallets.signing.logins import (
    EXPIRED,
    INCOMPLETE,
    NOT_YET_VALID,
    OTHER_ACCOUNT,
    OTHER_CHAIN,
    OTHER_URI,
    REPEATED,
    Login,
    read_login,
)
from wallets.signing.messages import read_message

NOW = datetime(2026, 11, 26, 12, tzinfo=UTC)
PHRASE = "wants you to sign in with your Ethereum account:"


def login_message(
    site: str,
    *,
    address: str = with_checksum(SIGNER),
    statement: str = "I accept the terms: https://p.example/terms\n",
    uri: str = "https://p.example/login",
    chain_id: str = "1",
    nonce: str = "32891756",
    issued_at: str = "2026-01-01T00:00:00Z",
    more: str = "",
) -> str:
    return (
        f"{site} {PHRASE}\n{address}\n\n{statement}\nURI: {uri}\nVersion: 1\n"
        f"Chain ID: {chain_id}\nNonce: {nonce}\nIssued At: {issued_at}{more}"
    )


def read(message: str | bytes, origin: str = "https://p.example") -> Login | None:
    raw = message if isinstance(message, bytes) else message.encode()
    return read_login(raw, origin=origin, address=SIGNER, chain_id="1", now=NOW)


def warnings(
    message: str | bytes, origin: str = "https://p.example"
) -> tuple[str, ...]:
    login = read(message, origin)
    assert login is not None
    return login.warnings


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"statement": ""},
        {"address": SIGNER},
        {"uri": "did:example:login"},
        {"chain_id": "01"},
        {"issued_at": "2026-11-26T14:05:00.123456789+02:00"},
        {"more": "\nExpiration Time: 2026-11-26T12:00:01Z"},
        {"more": "\nNot Before: 2026-11-26T12:00:00Z\nRequest ID: "},
        {"more": "\nRequest ID: a-1\nResources:\n- ipfs://b\n- https://c.example/d"},
    ],
)
def test_conforming_message_of_the_dapp_has_no_warning(changes):
    assert read(login_message("p.example", **changes)) == Login("p.example", False, ())


@pytest.mark.parametrize(
    ("site", "origin"),
    [
        ("p.example:443", "https://p.example"),
        ("P.EXAMPLE", "https://p.example"),
        ("HTTPS://P.Example:443", "https://p.example"),
        ("https://p.example", "https://p.example"),
        ("p.example:8443", "https://p.example:8443"),
        ("http://p.example:80", "http://p.example"),
        ("p.example:443", "https://p.example"),
        ("localhost:3000", "http://localhost:3000"),
        ("localhost", "http://localhost"),
        ("http://127.0.0.1:80", "http://127.0.0.1"),
        ("[::1]:3000", "http://[::1]:3000"),
        ("xn--bcher-kva.example", "https://xn--bcher-kva.example"),
    ],
)
def test_sites_are_compared_as_origins(site, origin):
    login = read(login_message(site, uri=f"{origin}/login"), origin)
    assert login == Login(site, False, ())


@pytest.mark.parametrize(
    ("site", "origin"),
    [
        ("bank.example", "https://p.example"),
        ("http://p.example", "https://p.example"),
        ("https://p.example", "http://p.example"),
        ("p.example", "http://p.example"),
        ("p.example:80", "http://p.example"),
        ("ftp://p.example", "https://p.example"),
        ("p.example", "https://p.example:8443"),
        ("p.example:8443", "https://p.example"),
        ("p.example:80", "https://p.example"),
        ("p.example:0443", "https://p.example"),
        ("p.example:", "https://p.example"),
        ("p.example:99999", "https://p.example"),
        ("p.example.", "https://p.example"),
        ("www.p.example", "https://p.example"),
        ("p.example@bank.example", "https://p.example"),
        ("p.example:443@bank.example", "https://p.example"),
        ("user@p.example", "https://p.example"),
        ("bank.example/p.example", "https://p.example"),
        ("bank.example#p.example", "https://p.example"),
        ("%70.example", "https://p.example"),
        ("p%2Eexample", "https://p.example"),
        ("р.example", "https://p.example"),  # Cyrillic
        ("ｐ.example", "https://p.example"),
        ("p。example", "https://p.example"),
        ("\u200bp.example", "https://p.example"),
        ("bücher.example", "https://xn--bcher-kva.example"),
        ("\u212aey.example", "https://key.example"),
        ("localhost:3000", "https://localhost:3000.example"),
        ("https://localhost:3000", "http://localhost:3000"),
        ("localhost:3001", "http://localhost:3000"),
        ("p.example", ""),
    ],
)
def test_other_sites_are_warned_of(site, origin):
    login = read(login_message(site, uri="did:x:y"), origin)
    assert login is not None
    assert login.is_elsewhere
    assert login.site == site


@pytest.mark.parametrize(
    ("changes", "warning"),
    [
        ({"address": "0x" + "ab" * 20}, OTHER_ACCOUNT),
        ({"chain_id": "10"}, OTHER_CHAIN),
        ({"chain_id": "9" * 5000}, OTHER_CHAIN),
        ({"uri": "https://bank.example/"}, OTHER_URI),
        ({"uri": "https://p.example@bank.example/"}, OTHER_URI),
        ({"uri": "https://["}, OTHER_URI),
        ({"issued_at": "2026-11-26T13:00:00Z"}, NOT_YET_VALID),
        ({"more": "\nExpiration Time: 2026-11-26T12:00:00Z"}, EXPIRED),
        ({"more": "\nExpiration Time: 0001-01-01T00:00:00+23:59"}, EXPIRED),
        ({"more": "\nNot Before: 2026-11-26T12:00:01Z"}, NOT_YET_VALID),
        ({"more": "\nNot Before: 9999-12-31T23:59:59-23:59"}, NOT_YET_VALID),
        ({"statement": f"bank.example {PHRASE}\n"}, REPEATED),
    ],
)
def test_each_member_that_is_not_as_usual_has_a_warning(changes, warning):
    assert warnings(login_message("p.example", **changes)) == (warning,)


GOOD = login_message("p.example", more="\nResources:\n- https://p.example/")


@pytest.mark.parametrize(
    "message",
    [
        *(
            GOOD[:end]
            for end in range(len(f"p.example {PHRASE}"), GOOD.index("Z\nRes"))
        ),
        f" {GOOD}",
        f"\n{GOOD}",
        f"\ufeff{GOOD}",
        f"Please sign.\n{GOOD}",
        f"Please sign. {GOOD}",
        f"{GOOD}\n",
        f"{GOOD} ",
        f"{GOOD}\nMore: 1",
        GOOD.replace("\n", "\r\n"),
        GOOD.replace("\n", "\r"),
        GOOD.replace("\n", "\u2028"),
        GOOD.replace("\n", "\x85"),
        GOOD.replace("\n", ""),
        GOOD.replace(" wants", "  wants"),
        GOOD.replace(" wants", "\twants"),
        GOOD.replace(" wants", "\nwants"),
        GOOD.replace(" sign in ", "\xa0sign\u3000in\u2009"),
        GOOD.replace(" sign in ", " sign-in "),
        GOOD.replace("sign in", "s\u200bi\u2060g\xadn\u202e i\u3164n"),
        GOOD.replace("sign in", "sígn ín"),
        GOOD.replace(PHRASE, PHRASE.upper()),
        GOOD.replace(PHRASE, PHRASE.title()),
        GOOD.replace("sign in", "ѕіgn іn"),
        GOOD.replace(PHRASE, PHRASE.translate(str.maketrans("acehiosy", "асеһіоѕу"))),
        GOOD.replace("sign in", "𝐬𝐢𝐠𝐧 𝐢𝐧"),
        GOOD.replace("sign in", "ｓｉｇｎ ｉｎ"),
        GOOD.replace("account:", "account"),
        GOOD.replace("account:", "account："),
        GOOD.replace("Version: 1", "Version: 2"),
        GOOD.replace("Nonce: 32891756", "Nonce: 1234567"),
        GOOD.replace("Nonce: 32891756", "Nonce: 1234567٨"),
        GOOD.replace("Chain ID: 1", "Chain ID: ١"),
        GOOD.replace("Chain ID: 1", "Chain ID: 0x1"),
        GOOD.replace("2026-01-01", "2026-02-30"),
        GOOD.replace("2026-01-01T00:00:00Z", "2026-01-01 00:00:00"),
        GOOD.replace("URI", "uri"),
        GOOD.replace("URI: https://p.example/login\n", ""),
        GOOD.replace("I accept", "“I accept”"),
        GOOD.replace("I accept the terms", "I accept\nthe terms"),
        GOOD.replace(with_checksum(SIGNER), with_checksum(SIGNER).swapcase()),
        GOOD.replace("0x", "0X"),
        GOOD.encode("utf-16"),
        GOOD.encode("utf-16-be"),
        b"\xff" + GOOD.encode(),
        GOOD.encode() + b"\0",
    ],
)
def test_words_of_a_login_in_another_message_have_a_warning(message):
    assert INCOMPLETE in warnings(message)


@pytest.mark.parametrize("form", ["text", "0x", "0X", "digits", "upper case"])
def test_message_is_examined_however_the_dapp_sends_it(form):
    text = login_message("bank.example", uri="did:x:y")
    digits = text.encode().hex()
    value = {
        "text": text,
        "digits": digits,
        "upper case": digits.upper(),
    }.get(form, form + digits)
    login = read(read_message(value))
    assert login == Login("bank.example", True, ())


@pytest.mark.parametrize(
    "message",
    [
        "",
        "Hello",
        "Sign in with Ethereum",
        "私はあなたのイーサリアムアカウントでログインしたいです。" * 50,
        "я хочу войти с помощью учётной записи эфириума, пожалуйста" * 50,
        b"\xff\x00" * 100,
        "\ufdfa" * 10_000,
    ],
)
def test_other_messages_are_no_logins(message):
    assert read(message) is None
