"""Login messages, whose signature proves to a site that an account is the user's.

The holder of the signature can act as the user on the site that the message names. A
message that contains the words of a login is therefore examined even if it is not
well-formed, because sites differ in what they accept.
Source: https://eips.ethereum.org/EIPS/eip-4361
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from abi.addresses import with_checksum
from legible.text import without_hidden
from wallets.identity import parse_origin, registrable_domain

_PHRASE = " wants you to sign in with your Ethereum account:"

_CHARACTERS = r"A-Za-z0-9._~!$&'()*+,;=:@\-"
_SCHEME = r"[A-Za-z][A-Za-z0-9+.\-]*"
_URI = rf"{_SCHEME}:[{_CHARACTERS}%/?#\[\]]+"
_TIME = (
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?"
    r"(?:[Zz]|[+-][0-9]{2}:[0-9]{2})"
)
_FIRST_LINE = re.compile(rf"(?:({_SCHEME})://)?(\S+){_PHRASE}")
_MESSAGE = re.compile(
    rf"(?:{_SCHEME}://)?[{_CHARACTERS}%\[\]]+{_PHRASE}\n"
    r"(?P<address>0x[0-9a-fA-F]{40})\n"
    r"\n"
    rf"(?:[{_CHARACTERS}/?#\[\] ]+\n)?"
    r"\n"
    rf"URI: (?P<uri>{_URI})\n"
    r"Version: 1\n"
    r"Chain ID: 0*(?P<chain_id>[0-9]+)\n"
    r"Nonce: [A-Za-z0-9]{8,}\n"
    rf"Issued At: (?P<issued_at>{_TIME})"
    rf"(?:\nExpiration Time: (?P<expires_at>{_TIME}))?"
    rf"(?:\nNot Before: (?P<not_before>{_TIME}))?"
    rf"(?:\nRequest ID: [{_CHARACTERS}%]*)?"
    rf"(?:\nResources:(?:\n- {_URI})*)?"
)
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}
_LOOPBACK = re.compile(r"http://(?:localhost|127\.0\.0\.1|\[::1\])(?::[0-9]+)?")

_MAX_SKEW = timedelta(minutes=10)
"""How far the clock of a dapp may be ahead."""

_MIN_LETTERS = 10
"""The fewest ASCII letters in a text that is taken for the phrase."""

INCOMPLETE = (
    "The message contains the words of a login, but it is not a complete login message "
    "(ERC-4361). A site may accept it nevertheless, so that somebody could act as you "
    "there."
)
OTHER_ACCOUNT = "The message logs in another account than the one that signs."
OTHER_CHAIN = "The message names another chain than the request."
OTHER_URI = "The URI in the message belongs to another site."
EXPIRED = "The message has expired."
NOT_YET_VALID = "The message becomes valid later, so that it can be used without you."
REPEATED = "The message contains the words of a login more than once."


@dataclass(frozen=True, slots=True)
class Login:
    """The facts that the page of a login message shows.

    site: the site that the first line names; "" if it names none.
    is_elsewhere: whether another dapp than that site requests the signature.
    warnings: further sentences.
    """

    site: str
    is_elsewhere: bool
    warnings: tuple[str, ...]


def read_login(
    message: bytes, *, origin: str, address: str, chain_id: str, now: datetime
) -> Login | None:
    """Return the facts to show about a message, None if it is not a login message.

    origin: of the web page that requests the signature; "" for a program.
    address: of the account that signs. chain_id: of the request's scope, as digits.
    """
    text = message.decode(errors="replace")
    count = _count_phrases(text)
    if not count:
        return None
    warnings = [] if count == 1 else [REPEATED]
    found = _MESSAGE.fullmatch(text)
    try:
        if found is None or not _has_checksum(found["address"]):
            raise ValueError("not well-formed")
        warnings += _time_warnings(found, now)
    except ValueError:
        warnings.append(INCOMPLETE)
    if found is not None:
        if found["address"].lower() != address.lower():
            warnings.append(OTHER_ACCOUNT)
        if found["chain_id"] != chain_id:
            warnings.append(OTHER_CHAIN)
        if _is_of_another_site(found["uri"], origin):
            warnings.append(OTHER_URI)
    first = _FIRST_LINE.match(text)
    if first is None:
        return Login("", False, tuple(warnings))
    site = first[0].removesuffix(_PHRASE)
    is_elsewhere = not origin or _origin(first[1], first[2], origin) != origin
    return Login(site, is_elsewhere, tuple(warnings))


def _count_phrases(text: str) -> int:
    """Return the number of occurrences of the phrase, including look-alikes.

    Only letters are compared, without case and accents. One outside ASCII can look like
    any other letter.
    """
    folded = _letters(text)
    windows = (found[1] for found in _LOOKS_LIKE_PHRASE.finditer(folded))
    return sum(len(each) - each.count("?") >= _MIN_LETTERS for each in windows)


def _letters(text: str) -> str:
    """Return the letters of a text in lower case, with ? for those outside ASCII."""
    plain = unicodedata.normalize("NFKD", without_hidden(text)).casefold()
    return "".join(c if c.isascii() else "?" for c in plain if c.isalpha())


_LOOKS_LIKE_PHRASE = re.compile(
    f"(?=({''.join(f'[{letter}?]' for letter in _letters(_PHRASE))}))"
)


def _has_checksum(address: str) -> bool:
    """Return whether an address has its checksum, or is in lower case without one."""
    return address in (address.lower(), with_checksum(address.lower()))


def _time_warnings(found: re.Match[str], now: datetime) -> list[str]:
    """Return warnings about the time. Raises: ValueError if a time does not exist."""
    issued, expires, starts = (
        None if found[name] is None else datetime.fromisoformat(found[name].upper())
        for name in ("issued_at", "expires_at", "not_before")
    )
    is_early = (issued is not None and issued > now + _MAX_SKEW) or (
        starts is not None and starts > now
    )
    is_late = expires is not None and expires <= now
    return [EXPIRED] * is_late + [NOT_YET_VALID] * is_early


def _origin(scheme: str | None, authority: str, asking: str) -> str | None:
    """Return the origin that a login message names, None if it is none.

    scheme: None for https. Pages of this machine are an exception: they log in without
        a scheme and without TLS.
    asking: the origin of the page that requests the signature.
    """
    if scheme is None:
        scheme = "http" if _LOOPBACK.fullmatch(asking) else "https"
    scheme = scheme.lower()
    place = authority.lower() if authority.isascii() else authority
    try:
        return parse_origin(
            f"{scheme}://{place.removesuffix(_DEFAULT_PORTS.get(scheme, ''))}"
        )
    except ValueError:
        return None


def _is_of_another_site(uri: str, origin: str) -> bool:
    """Return whether a URI of the web leads to another registered domain."""
    try:
        parts = urlsplit(uri)
        host = parts.hostname or ""
    except ValueError:
        return True
    own = urlsplit(origin).hostname or ""
    is_web = parts.scheme in _DEFAULT_PORTS and bool(own)
    return is_web and registrable_domain(host) != registrable_domain(own)
