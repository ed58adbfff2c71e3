"""Admission of sockets by token, and the table of open sockets.

A socket belongs to the process that serves it. Each serving process renews its own row
every few seconds, so that the sockets of a killed process stop counting soon.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone

from wallets.credentials import digest
from wallets.models import (
    BlockedDapp,
    Dapp,
    DappKind,
    DappToken,
    LiveSocket,
    ServingProcess,
)

MAX_SOCKETS = 20
"""Sockets of one dapp over all processes: tabs and devices."""

USED_EVERY = timedelta(hours=1)
"""Precision of `last_used_at` for tokens of sockets that stay open."""

_ADMISSION_LOCK = 0x61646D74
"""The number of an advisory lock of this module."""


class Refusal(Enum):
    """The reason why a socket is refused; the value is the text of the response."""

    BAD_TOKEN = "the connection token is not valid here"
    TOO_MANY = f"more than {MAX_SOCKETS} sockets"


@dataclass(frozen=True, slots=True)
class Handshake:
    """A WebSocket handshake of a dapp.

    name: of the socket, unique among all processes.
    secret: the token as sent by the client.
    origin: the Origin header, None without one.
    """

    name: str
    secret: str = field(repr=False)
    origin: str | None
    remote_address: str | None


@transaction.atomic
def admit(handshakes: Sequence[Handshake], process: int) -> list[DappToken | Refusal]:
    """Return the token that admits each handshake, or the reason for its rejection.

    A page's token is valid with its own origin only, a program's token without an
    Origin header only, because browsers always send the header. Each use extends a
    token.
    process: the number of the serving process, which counts as alive from now on.
    """
    renew_process(process)
    with connection.cursor() as cursor:
        # Serializes admission, so that two processes never exceed the limit together.
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_ADMISSION_LOCK])
    tokens = _tokens(handshakes)
    banned = _banned(tokens.values())
    dapps = {token.dapp_id for token in tokens.values()}
    names = LiveSocket.objects.open().filter(dapp__in=dapps)
    open_sockets = Counter(names.values_list("dapp_id", flat=True))
    answers: list[DappToken | Refusal] = []
    for handshake in handshakes:
        token = tokens.get(digest(handshake.secret))
        if token is None or not _may_enter(token, handshake.origin, banned):
            answers.append(Refusal.BAD_TOKEN)
        elif open_sockets[token.dapp_id] >= MAX_SOCKETS:
            answers.append(Refusal.TOO_MANY)
        else:
            open_sockets[token.dapp_id] += 1
            answers.append(token)
    _write(handshakes, answers, process)
    return answers


def is_good(token: DappToken, origin: str | None) -> bool:
    """Return whether a live token is valid for an Origin header. None: without header."""
    return _may_enter(token, origin, _banned([token]))


def renew_process(process: int) -> None:
    """Note that a serving process is alive."""
    ServingProcess.objects.bulk_create(
        [ServingProcess(number=process, seen_at=Now())],
        update_conflicts=True,
        unique_fields=["number"],
        update_fields=["seen_at"],
    )


def leave(names: Collection[str]) -> None:
    """Delete the rows of closed sockets."""
    LiveSocket.objects.filter(name__in=names).delete()


@transaction.atomic
def forget_process(process: int) -> None:
    """Delete the rows of a process that stops, and of all its sockets."""
    LiveSocket.objects.filter(process=process).delete()
    ServingProcess.objects.filter(number=process).delete()


@transaction.atomic
def keep_alive(process: int) -> None:
    """Extend the tokens of sockets that have been open for a while."""
    held = LiveSocket.objects.filter(process=process).values("token_id")
    since = timezone.now() - USED_EVERY
    unused = Q(last_used_at__lt=since) | Q(last_used_at=None)
    _use(
        set(DappToken.objects.filter(unused, pk__in=held).values_list("pk", flat=True))
    )


def _tokens(handshakes: Sequence[Handshake]) -> Mapping[str, DappToken]:
    """Return the live tokens of handshakes, by the digests of the secrets sent."""
    shown = {digest(handshake.secret) for handshake in handshakes}
    live = DappToken.objects.live().select_related("dapp__user")
    found = {}
    for token in live.filter(Q(digest__in=shown) | Q(former_digest__in=shown)):
        for one in (token.former_digest, token.digest):
            if one:
                found[one] = token
    return found


def _banned(tokens: Collection[DappToken]) -> set[tuple[str, str]]:
    idents = {token.dapp.ident for token in tokens}
    rows = BlockedDapp.objects.filter(ident__in=idents)
    return set(rows.values_list("kind", "ident"))


def _may_enter(
    token: DappToken, origin: str | None, banned: set[tuple[str, str]]
) -> bool:
    dapp = token.dapp
    expected = dapp.ident if dapp.kind == DappKind.WEB else None
    is_blocked = dapp.blocked_at is not None or (dapp.kind, dapp.ident) in banned
    return origin == expected and not is_blocked and dapp.user.is_active


def _write(
    handshakes: Sequence[Handshake],
    answers: Sequence[DappToken | Refusal],
    process: int,
) -> None:
    let_in = [
        (handshake, token)
        for handshake, token in zip(handshakes, answers, strict=True)
        if isinstance(token, DappToken)
    ]
    LiveSocket.objects.bulk_create(
        LiveSocket(
            name=handshake.name,
            dapp_id=token.dapp_id,
            token=token,
            process=process,
            remote_address=handshake.remote_address,
        )
        for handshake, token in let_in
    )
    used = _use({token.pk for _, token in let_in})
    moved = []
    for handshake, token in let_in:
        if token.pk in used and token.last_used_from != handshake.remote_address:
            token.last_used_from = handshake.remote_address
            moved.append(token)
    DappToken.objects.bulk_update(moved, ["last_used_from"])
    shown = {digest(handshake.secret) for handshake, _ in let_in}
    renewed = DappToken.objects.filter(pk__in=used, digest__in=shown)
    # A client that has the new secret no longer needs the former one.
    renewed.exclude(former_digest="").update(former_digest="")


def _use(token_ids: Collection[int]) -> set[int]:
    """Extend tokens and return their ids; skip rows that other transactions lock.

    It never waits for a row lock, so it can't be part of a deadlock.
    """
    now = timezone.now()
    tokens = DappToken.objects.live().filter(pk__in=token_ids)
    free = tokens.select_for_update(no_key=True, skip_locked=True)
    dapps = dict(free.values_list("pk", "dapp_id"))
    used = DappToken.objects.filter(pk__in=dapps)
    used.update(
        last_used_at=now, expires_at=now + timedelta(days=settings.WALLETS_TOKEN_DAYS)
    )
    theirs = Dapp.objects.filter(pk__in=dapps.values())
    idle = theirs.select_for_update(no_key=True, skip_locked=True)
    free_dapps = list(idle.values_list("pk", flat=True))
    Dapp.objects.filter(pk__in=free_dapps).update(last_used_at=now)
    return set(dapps)
