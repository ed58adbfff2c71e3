"""Names of scopes, permissions and dapps for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple
from urllib.parse import urlsplit

from django.utils import timezone

from networks.models import Network
from wallets.caip import EIP155, WALLET, evm_scope
from wallets.identity import registrable_domain
from wallets.models import ADD_CHAIN, CREATE_SESSION, Dapp, DappKind
from wallets.permissions import Group, groups_of
from wallets.scopes import ScopeObject

NEW = timedelta(days=1)
"""Time after pairing during which a dapp is marked as new."""


class GroupWords(NamedTuple):
    """Title and explanation of a permission's checkbox."""

    title: str
    meaning: str


GROUPS = {
    Group.READ: GroupWords(
        "Read chain data",
        "Blocks, transactions, balances, contract calls: public data.",
    ),
    Group.SIGN: GroupWords(
        "Ask you to sign messages",
        "You are asked again for each signature, with your passphrase.",
    ),
    Group.SEND: GroupWords(
        "Ask you to send transactions",
        "You are asked again for each one, with your passphrase. The dapp may also "
        "submit transactions that are signed already.",
    ),
    Group.NOTIFY: GroupWords(
        "Live notifications", "New blocks and logs, as long as it is connected."
    ),
}


ASKS = {
    CREATE_SESSION: "wants to connect",
    ADD_CHAIN: "wants to use another network",
    "personal_sign": "asks you to sign a message",
    "eth_signTypedData_v4": "asks you to sign structured data",
    "eth_sendTransaction": "asks you to send a transaction",
}
"""The request in words, by the method that the dapp has called."""


def group_titles(scopes: Iterable[ScopeObject]) -> list[str]:
    """Return the titles of the permissions that scopes contain."""
    allowed = groups_of(scopes)
    return [words.title for group, words in GROUPS.items() if group in allowed]


def scope_names() -> Mapping[str, str]:
    """Return the names of the scopes that the wallet serves.

    Of two networks with the same chain id the older one is the chain, as in
    `wallets.offers`.
    """
    names = {
        WALLET: "The wallet itself",
        f"{WALLET}:{EIP155}": "The wallet itself, for EVM networks",
    }
    for network in Network.objects.exclude(head_number=None):
        names.setdefault(evm_scope(network.chain_id), network.name or network.slug)
    return names


@dataclass(frozen=True, slots=True)
class Identity:
    """A dapp's identity, from sources other than the dapp.

    name: an origin, or the user's name for a program.
    domain: the registered part of an origin, to be emphasised; "" for programs.
    before, after: the rest of the origin.
    in_script: the host in its own script if that is not ASCII, else "".
    """

    dapp: Dapp
    name: str
    domain: str = ""
    before: str = ""
    after: str = ""
    in_script: str = ""

    @property
    def host(self) -> str:
        """The whole host name, "" for programs."""
        return self.before.partition("://")[2] + self.domain

    @property
    def is_program(self) -> bool:
        """Whether it is a program, paired with a typed code."""
        return self.dapp.kind == DappKind.APP

    @property
    def is_new(self) -> bool:
        """Whether it was paired less than a day ago."""
        return timezone.now() - self.dapp.created_at < NEW

    @property
    def is_insecure(self) -> bool:
        """Whether the page is loaded without TLS from another machine."""
        is_here = self.domain in {"localhost", "127.0.0.1", "[::1]"}
        return self.before.startswith("http://") and not is_here


def identity(dapp: Dapp) -> Identity:
    """Return a dapp's identity."""
    if dapp.kind != DappKind.WEB:
        return Identity(dapp, dapp.name)
    before = f"{urlsplit(dapp.ident).scheme}://"
    place = dapp.ident.removeprefix(before)
    port = urlsplit(dapp.ident).port
    after = "" if port is None else f":{port}"
    host = place.removesuffix(after)
    domain = registrable_domain(host)
    before += host.removesuffix(domain)
    return Identity(dapp, dapp.name, domain, before, after, _in_script(host))


def _in_script(host: str) -> str:
    """Return a host name in its own script (IDNA decoded), "" if it is ASCII."""
    try:
        shown = host.encode("ascii").decode("idna")
    except UnicodeError:
        return ""
    return shown if shown != host else ""
