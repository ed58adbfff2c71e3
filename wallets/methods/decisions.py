"""Calls that wait for the user's decision."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from wallets.context import Context
from wallets.models import ConsentRequest
from wallets.services.requests import withdraw_requests
from wallets.store import RequestOutcome
from wallets.threads import in_thread


async def decision_on(
    context: Context, service: Callable[..., ConsentRequest], **arguments: Any
) -> RequestOutcome:
    """Create a request with a service, and return its outcome.

    It waits until the user decides or the request expires. When the socket closes, the
    request is withdrawn.
    service: takes dapp_id, cause and `arguments`.
    Raises: the errors of the service.
    """
    dapp_id, cause = context.peer.dapp_id, context.cause
    asking = in_thread(service, dapp_id=dapp_id, cause=cause, **arguments)
    asked = asyncio.ensure_future(asking)
    try:
        return await context.wallet.decision(await asyncio.shield(asked))
    except asyncio.CancelledError:
        # The socket has closed. A request that is still being created would remain.
        await asyncio.wait([asked])
        await in_thread(withdraw_requests, socket=context.peer.socket)
        raise
