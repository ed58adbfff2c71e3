"""Calls that wait for the user's decision."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from django.db import Error as DatabaseError

from wallets.errors import UserRejected
from wallets.models import ConsentRequest, RequestState
from wallets.services.requests import withdraw_request, withdraw_requests
from wallets.serving.context import Context
from wallets.serving.store import RequestOutcome
from wallets.serving.threads import in_thread

RETRY_SECONDS = 1.0
"""Pause after a database error."""


async def decision_on(
    context: Context, service: Callable[..., ConsentRequest], **arguments: Any
) -> RequestOutcome:
    """Create a request with a service, and return its outcome.

    It waits until the user decides or the request expires. When the socket closes, or
    the dapp cancels the call, the request is withdrawn.
    service: takes dapp_id, cause and `arguments`.
    Raises: the errors of the service; UserRejected after a cancellation.
    """
    dapp_id, cause = context.peer.dapp_id, context.cause
    asking = in_thread(service, dapp_id=dapp_id, cause=cause, **arguments)
    asked = asyncio.ensure_future(asking)
    try:
        request = await asyncio.shield(asked)
        withdrawal = asyncio.create_task(_withdraw_when_cancelled(context, request))
        try:
            outcome = await context.wallet.decision(request)
        finally:
            withdrawal.cancel()
    except asyncio.CancelledError:
        # The socket has closed. A request that is still being created would remain.
        await asyncio.wait([asked])
        await in_thread(withdraw_requests, socket=context.peer.socket)
        raise
    if outcome.state == RequestState.WITHDRAWN and context.cancelled.is_set():
        raise UserRejected
    return outcome


async def _withdraw_when_cancelled(context: Context, request: ConsentRequest) -> None:
    """Withdraw a request when its call is cancelled, unless it is decided already."""
    await context.cancelled.wait()
    while True:
        with suppress(DatabaseError):
            await in_thread(
                withdraw_request, request_id=request.pk, cause=context.cause
            )
            return
        await asyncio.sleep(RETRY_SECONDS)
