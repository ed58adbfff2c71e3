"""Sockets that count as open, without a server: for tests within one transaction."""

from __future__ import annotations

from uuid import uuid4

from django.utils import timezone

from wallets.credentials import digest
from wallets.models import Dapp, DappToken, LiveSocket
from wallets.services.presence import renew_process


def serve_process(number: int) -> None:
    """Let a process count as alive for some seconds."""
    renew_process(number)


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
