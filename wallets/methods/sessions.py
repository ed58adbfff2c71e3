"""The methods wallet_createSession, wallet_getSession and wallet_revokeSession.

They behave like MetaMask where the standards leave a choice or MetaMask differs.
Source: https://chainagnostic.org/CAIPs/caip-25, caip-285, caip-312
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import orjson

from jsonrpc.params import Param
from wallets import scopes
from wallets.errors import InvalidParams, InvalidSessionProperties, UserRejected
from wallets.methods.decisions import decision_on
from wallets.models import RequestState
from wallets.proposals import decode_properties, wanted_expiry
from wallets.registries import session_methods
from wallets.schemas import REQUESTED_SCOPES, SESSION, STRINGS
from wallets.scopes import RequestedScope, Scopes, ShapeError
from wallets.services.consent import request_session
from wallets.services.sessions import revoke_session
from wallets.serving.context import Answer, Context
from wallets.serving.store import RequestOutcome, SessionState
from wallets.serving.threads import in_thread


def _decode_names(value: Any) -> list[str]:
    if not isinstance(value, list):
        raise ShapeError("", "expected an array of strings")
    if len(value) > scopes.MAX_STRINGS:
        raise ShapeError("", f"more than {scopes.MAX_STRINGS} strings")
    for index, name in enumerate(value):
        if not isinstance(name, str):
            raise ShapeError(f"[{index}]", "expected a string")
    return value


@session_methods.method(
    "wallet_createSession",
    params=[
        Param("requiredScopes", scopes.decode_scopes, REQUESTED_SCOPES, required=False),
        Param("optionalScopes", scopes.decode_scopes, REQUESTED_SCOPES, required=False),
        Param(
            "sessionProperties", decode_properties, {"type": "object"}, required=False
        ),
    ],
    result=SESSION,
    summary="Asks the user for a session, or to extend the existing one.",
)
async def create_session(
    context: Context,
    required: Mapping[str, RequestedScope] | None,
    optional: Mapping[str, RequestedScope] | None,
    properties: Mapping[str, Any] | None,
) -> Answer:
    """Ask the user, wait for the decision, and return the granted session.

    Raises: InvalidParams, InvalidSessionProperties, ScopesNotSupported, AlreadyPending,
        BlockedAsSpam, LimitExceeded, UserRejected.
    """
    if properties is not None and not properties:
        raise InvalidSessionProperties
    outcome = await decision_on(
        context,
        request_session,
        wanted=_merged(required or {}, optional or {}),
        expires_at=wanted_expiry(properties or {}, datetime.now(UTC)),
    )
    if outcome.state != RequestState.APPROVED:
        raise UserRejected
    return _granted(context, outcome)


@session_methods.method(
    "wallet_getSession",
    result=SESSION,
    summary="Returns the session. Without a session, its scopes are empty.",
)
async def get_session(context: Context) -> Answer:
    """Return the current session. Without a session, the result has no scopes."""
    session = await context.wallet.store.session(context.peer.dapp_id)
    return Answer(session.as_json(), session)


@session_methods.method(
    "wallet_revokeSession",
    params=[Param("scopes", _decode_names, STRINGS, required=False)],
    result={"type": "boolean"},
    summary="Ends the session, or removes scopes from it. Always returns true.",
)
async def revoke(context: Context, names: list[str] | None) -> Answer:
    """Remove the named scopes from the session, or all of them. Return true."""
    row = await in_thread(
        revoke_session,
        dapp_id=context.peer.dapp_id,
        cause=context.cause,
        names=names,
    )
    expires_at = row.expires_at
    session = SessionState(
        version=row.version,
        scopes=row.scopes,
        changed_by=row.changed_by,
        expires_at=None if expires_at is None else expires_at.timestamp(),
    )
    return Answer(b"true", session)


def _merged(
    required: Mapping[str, RequestedScope], optional: Mapping[str, RequestedScope]
) -> Scopes:
    try:
        return scopes.merge([required, optional])
    except ShapeError as error:
        raise InvalidParams("", error.path, str(error)) from error


def _granted(context: Context, outcome: RequestOutcome) -> Answer:
    """Return the session that the request has granted, without later changes."""
    granted = orjson.loads(outcome.outcome)
    moment = granted["expires_at"]
    session = SessionState(
        version=granted["version"],
        scopes=scopes.from_stored(granted["scopes"]),
        changed_by=context.peer.socket,
        expires_at=moment,
    )
    return Answer(session.as_json(), session)
