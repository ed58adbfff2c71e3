"""Calls that wait for the user."""

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
    """Have a service ask the user, and return what becomes of it.

    It waits for as long as he may take. When the socket goes, what it has asked for is
    taken back.
    Raises: what the service does.
    """
    dapp_id, cause = context.peer.dapp_id, context.cause
    asking = in_thread(service, dapp_id=dapp_id, cause=cause, **arguments)
    asked = asyncio.ensure_future(asking)
    try:
        return await context.wallet.decision(await asyncio.shield(asked))
    except asyncio.CancelledError:
        # The socket has gone. A request that is just being made would outlive it.
        await asyncio.wait([asked])
        await in_thread(withdraw_requests, socket=context.peer.socket)
        raise
