"""Sockets that count as open, without a server: for tests within one transaction."""

from __future__ import annotations

from uuid import uuid4

from django.db import connection
from django.utils import timezone

from wallets.credentials import digest
from wallets.models import PROCESS_LOCKS, Dapp, DappToken, LiveSocket


def serve_process(number: int) -> None:
    """Have a process live until the end of the transaction."""
    lock = "SELECT pg_advisory_xact_lock_shared(%s::int4, %s::int4)"
    with connection.cursor() as cursor:
        cursor.execute(lock, [PROCESS_LOCKS, number])


def open_socket_of(
    dapp: Dapp, *, process: int, remote_address: str = "192.0.2.8"
) -> LiveSocket:
    """Return a socket of a dapp, with a token of its own."""
    secret = uuid4().hex
    token = DappToken.objects.create(
        dapp=dapp, digest=digest(secret), expires_at=timezone.now()
    )
    return LiveSocket.objects.create(
        name=secret,
        dapp=dapp,
        token=token,
        process=process,
        remote_address=remote_address,
    )
