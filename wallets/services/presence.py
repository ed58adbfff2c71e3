"""Dapps come in with their tokens, and it is known which of their sockets are open.

A socket belongs to the process that serves it. Each serving process holds an advisory
lock with its own number as long as it lives, so that the sockets of one that was killed
count no more from that moment on.
Source: https://www.postgresql.org/docs/current/view-pg-locks.html
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum

from django.db import connection, transaction
from django.db.models import Q
from django.utils import timezone

from wallets import conf
from wallets.credentials import digest
from wallets.models import (
    BlockedDapp,
    Dapp,
    DappKind,
    DappToken,
    LiveSocket,
    living_processes,
)

MAX_SOCKETS = 20
"""Sockets of one dapp over all processes: tabs and devices."""

USED_EVERY = timedelta(hours=1)
"""How exactly it is known when a dapp that stays connected was last there."""

_ADMISSION_LOCK = 0x61646D74
"""The number of an advisory lock that nobody else takes."""


class Refusal(Enum):
    """Why a socket is not let in."""

    BAD_TOKEN = "the connection token is not good here"
    TOO_MANY = f"more than {MAX_SOCKETS} sockets"


@dataclass(frozen=True, slots=True)
class Arrival:
    """Somebody who wants to connect.

    name: of the socket, unique among those of all processes.
    origin: the handshake's Origin header.
    """

    name: str
    secret: str = field(repr=False)
    origin: str | None
    remote_address: str | None


@transaction.atomic
def admit(arrivals: Sequence[Arrival], process: int) -> list[DappToken | Refusal]:
    """Return for each arrival the token that opens its socket, or why there is none.

    A page's token is good with its own origin only, a program's without any: browsers
    cannot leave it out. With each use a token's life begins anew.
    process: the number of the process that asks.
    """
    with connection.cursor() as cursor:  # nobody else counts sockets meanwhile
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_ADMISSION_LOCK])
    tokens = _tokens(arrivals)
    banned = _banned(tokens.values())
    live = Q(process__in=living_processes()) | Q(process=process)
    dapps = {token.dapp_id for token in tokens.values()}
    names = LiveSocket.objects.filter(live, dapp__in=dapps)
    open_sockets = Counter(names.values_list("dapp_id", flat=True))
    answers: list[DappToken | Refusal] = []
    for arrival in arrivals:
        token = tokens.get(digest(arrival.secret))
        if token is None or not _may_enter(token, arrival.origin, banned):
            answers.append(Refusal.BAD_TOKEN)
        elif open_sockets[token.dapp_id] >= MAX_SOCKETS:
            answers.append(Refusal.TOO_MANY)
        else:
            open_sockets[token.dapp_id] += 1
            answers.append(token)
    _write(arrivals, answers, process)
    return answers


def is_good(token: DappToken, origin: str | None) -> bool:
    """Return whether a live token is good where an Origin header says, or none does."""
    return _may_enter(token, origin, _banned([token]))


def leave(names: Collection[str]) -> None:
    """Forget sockets that are closed."""
    LiveSocket.objects.filter(name__in=names).delete()


@transaction.atomic
def forget_process(process: int) -> None:
    """Forget all sockets of a process, which ends."""
    LiveSocket.objects.filter(process=process).delete()


@transaction.atomic
def keep_alive(process: int) -> None:
    """Begin the lives of tokens anew whose sockets have been open for a while."""
    held = LiveSocket.objects.filter(process=process).values("token_id")
    since = timezone.now() - USED_EVERY
    unused = Q(last_used_at__lt=since) | Q(last_used_at=None)
    _use(
        set(DappToken.objects.filter(unused, pk__in=held).values_list("pk", flat=True))
    )


def _tokens(arrivals: Sequence[Arrival]) -> Mapping[str, DappToken]:
    """Return the live tokens that are shown, by the digests of what is shown."""
    shown = {digest(arrival.secret) for arrival in arrivals}
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
    arrivals: Sequence[Arrival], answers: Sequence[DappToken | Refusal], process: int
) -> None:
    let_in = [
        (arrival, token)
        for arrival, token in zip(arrivals, answers, strict=True)
        if isinstance(token, DappToken)
    ]
    LiveSocket.objects.bulk_create(
        LiveSocket(
            name=arrival.name,
            dapp_id=token.dapp_id,
            token=token,
            process=process,
            remote_address=arrival.remote_address,
        )
        for arrival, token in let_in
    )
    used = _use({token.pk for _, token in let_in})
    moved = []
    for arrival, token in let_in:
        if token.pk in used and token.last_used_from != arrival.remote_address:
            token.last_used_from = arrival.remote_address
            moved.append(token)
    DappToken.objects.bulk_update(moved, ["last_used_from"])
    shown = {digest(arrival.secret) for arrival, _ in let_in}
    renewed = DappToken.objects.filter(pk__in=used, digest__in=shown)
    # Whoever has the new secret needs the former one no more.
    renewed.exclude(former_digest="").update(former_digest="")


def _use(token_ids: Collection[int]) -> set[int]:
    """Begin tokens' lives anew, and return whose; those in other hands are left out.

    It waits for nobody, so that nobody can wait for it in a circle.
    """
    now = timezone.now()
    tokens = DappToken.objects.live().filter(pk__in=token_ids)
    free = tokens.select_for_update(no_key=True, skip_locked=True)
    dapps = dict(free.values_list("pk", "dapp_id"))
    used = DappToken.objects.filter(pk__in=dapps)
    used.update(last_used_at=now, expires_at=now + conf.token_lifetime())
    theirs = Dapp.objects.filter(pk__in=dapps.values())
    idle = theirs.select_for_update(no_key=True, skip_locked=True)
    free_dapps = list(idle.values_list("pk", flat=True))
    Dapp.objects.filter(pk__in=free_dapps).update(last_used_at=now)
    return set(dapps)
