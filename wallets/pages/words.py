"""Names of scopes, permissions and dapps for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple
from urllib.parse import urlsplit

from django.utils import timezone

from networks.models import Network, Upstream
from wallets.caip import EIP155, WALLET, evm_scope
from wallets.identity import registrable_domain
from wallets.models import ADD_CHAIN, CREATE_SESSION, Dapp, DappKind
from wallets.permissions import EVM_WALLET_METHODS, Group, group_of, groups_of
from wallets.scopes import ScopeObject, unique

NEW = timedelta(days=1)
"""Time after pairing during which a dapp is marked as new."""


class GroupWords(NamedTuple):
    """Title and explanation of a permission's checkbox.

    title: the permitted actions. short: a shorter title, next to a number of methods.
    """

    title: str
    short: str
    meaning: str


_READS = {
    "blocks and transactions": "eth_getBlock eth_getTransactionBy eth_getUncle "
    "eth_getHeader eth_getRaw debug_getRaw erigon_ ots_getBlock eth_blockNumber",
    "receipts": "eth_getTransactionReceipt eth_getBlockReceipts",
    "balances, code and storage": "eth_getBalance eth_getCode eth_getStorage "
    "eth_getAccount eth_getTransactionCount eth_getProof ots_hasCode",
    "contract calls": "eth_call eth_estimateGas eth_simulate eth_createAccessList",
    "logs": "eth_getLogs eth_newFilter eth_getFilter",
    "gas prices": "eth_gasPrice eth_fee eth_maxPriority eth_baseFee eth_blobBaseFee",
    "pending transactions": "txpool_ eth_newPendingTransactionFilter",
}
"""Kinds of chain data, with the beginnings of the methods that read them."""


def group_words(group: Group, methods: Iterable[str]) -> GroupWords:
    """Describe a permission that consists of some methods."""
    names = tuple(methods)
    if names == EVM_WALLET_METHODS:
        return GroupWords(
            "Ask you for more networks", "ask", "You are asked each time."
        )
    match group:
        case Group.READ:
            kinds = _kinds_read(names)
            return GroupWords("Read chain data", "read", f"Public data: {kinds}.")
        case Group.SIGN:
            return _signing(names)
        case Group.SEND:
            return _sending(names)
        case Group.NOTIFY:
            meaning = "New blocks and logs while the dapp is connected."
            return GroupWords("Live notifications", "notify", meaning)
        case Group.TRACE:
            meaning = "Public data: calls and state changes within transactions."
            return GroupWords("Trace transactions", "trace", meaning)


def _kinds_read(methods: tuple[str, ...]) -> str:
    """Return the kinds of data that methods read: `blocks and transactions; logs`."""
    found = [
        kind
        for kind, starts in _READS.items()
        if any(name.startswith(tuple(starts.split())) for name in methods)
    ]
    return "; ".join(found) or "properties of the chain"


def _signing(methods: tuple[str, ...]) -> GroupWords:
    texts = {
        "personal_sign": "messages",
        "eth_signTypedData_v4": "typed data",
    }
    what = " and ".join(text for name, text in texts.items() if name in methods)
    return GroupWords(
        f"Ask you to sign {what}",
        "sign",
        "You are asked for each signature, and confirm it with your passphrase. The "
        "account needs a key.",
    )


def _sending(methods: tuple[str, ...]) -> GroupWords:
    """Describe sending. Transactions that are signed elsewhere need no account."""
    if "eth_sendTransaction" not in methods:
        meaning = "Transactions that the dapp has already signed. You are not asked."
        return GroupWords("Submit signed transactions", "send", meaning)
    meaning = "You are asked for each transaction, and confirm it with your "
    meaning += "passphrase. The account needs a key."
    if len(methods) > 1:
        meaning += " The dapp can also submit transactions that it has already signed."
    return GroupWords("Ask you to send transactions", "send", meaning)


ASKS = {
    CREATE_SESSION: "wants to connect",
    ADD_CHAIN: "wants to use another network",
    "personal_sign": "asks you to sign a message",
    "eth_signTypedData_v4": "asks you to sign typed data",
    "eth_sendTransaction": "asks you to send a transaction",
}
"""The request in words, by the method that the dapp has called."""


def group_titles(scopes: Iterable[ScopeObject]) -> list[str]:
    """Return the titles of the permissions that scopes contain."""
    together = [*scopes]
    allowed = groups_of(together)
    return [
        group_words(group, methods_of(group, together)).title
        for group in Group
        if group in allowed
    ]


def methods_of(group: Group, scopes: Iterable[ScopeObject]) -> tuple[str, ...]:
    """Return the methods of a permission in some scopes, each once."""
    named = (name for scope in scopes for name in scope.methods)
    return unique(name for name in named if group_of(name) == group)


def pooling_scopes() -> frozenset[str]:
    """Return the scopes of networks without upstreams, whose transactions stay pending.

    Of two networks with the same chain id the older one counts.
    """
    upstreams = Upstream.objects.filter(is_enabled=True)
    followed = set(upstreams.values_list("network_id", flat=True))
    oldest: dict[str, int] = {}
    for network in Network.objects.visible().exclude(head_number=None):
        oldest.setdefault(evm_scope(network.chain_id), network.pk)
    return frozenset(scope for scope, pk in oldest.items() if pk not in followed)


def scope_names() -> Mapping[str, str]:
    """Return the names of the scopes that the wallet serves.

    Of two networks with the same chain id the oldest visible one is the chain, as in
    `Wallet.network`, and without a visible one the oldest.
    """
    names = {
        WALLET: "Wallet functions",
        f"{WALLET}:{EIP155}": "Requests for more networks",
    }
    served = Network.objects.exclude(head_number=None).filter(is_preparing=False)
    for network in sorted(served, key=lambda one: not one.is_visible):
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
    def origin(self) -> str:
        """The origin of a web page, "" for programs."""
        return "" if self.is_program else self.dapp.ident

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
