"""The current state of dapps and requests, read with merged queries and never cached.

Each call reads its grant again. This takes a fraction of a millisecond, because
concurrent calls share a query. A revocation therefore holds in every process as soon as
it was answered.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import orjson

from postgres.connections import Connections
from postgres.lookup import Lookup
from postgres.statement import INT8, Row, read_bool, read_int8
from wallets import scopes
from wallets.models import RequestState
from wallets.proposals import properties_json
from wallets.scopes import Scopes, StoredScope

_DAPPS = """
    SELECT k.n, s.version, s.scopes::text, s.changed_by,
        (extract(epoch FROM s.expires_at) * 1000000)::int8,
        u.is_active AND d.blocked_at IS NULL AND NOT EXISTS (
            SELECT FROM wallets_blockeddapp b
            WHERE b.kind = d.kind AND b.ident = d.ident),
        (SELECT string_agg(t.id::text, ',') FROM wallets_dapptoken t
         WHERE t.dapp_id = d.id AND t.revoked_at IS NULL AND t.expires_at > now()),
        d.user_id
    FROM k
    JOIN wallets_dapp d ON d.id = k.dapp_id
    JOIN wallets_session s ON s.dapp_id = d.id
    JOIN keys_user u ON u.id = d.user_id
"""

_REQUESTS = """
    SELECT k.n, r.state, r.outcome::text
    FROM k JOIN wallets_consentrequest r ON r.id = k.request_id
"""


@dataclass(frozen=True, slots=True)
class SessionState:
    """A session at one moment.

    version: grows with each change of the session.
    changed_by: name of the socket whose call made this version, "" for the wallet.
    expires_at: Unix seconds, None for never.
    """

    version: int
    scopes: Scopes
    changed_by: str = ""
    expires_at: float | None = None

    @property
    def ends_at(self) -> datetime | None:
        """When the session ends; None for never, or without a session."""
        if self.expires_at is None or not self.scopes:
            return None
        return datetime.fromtimestamp(self.expires_at, UTC)

    def scopes_json(self) -> bytes:
        """Return the `sessionScopes` as JSON."""
        return orjson.dumps(scopes.to_json(self.scopes))

    def as_json(self) -> bytes:
        """Return the session as JSON, as wallet_getSession returns it."""
        properties = orjson.dumps(properties_json(self.ends_at))
        return (
            b'{"sessionScopes":' + self.scopes_json()
            + b',"sessionProperties":' + properties + b"}"
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class DappState:
    """The state that decides what a dapp's sockets may do.

    is_welcome: False if the user or staff have blocked the dapp, or the user was
        deactivated.
    live_tokens: ids of the dapp's valid tokens.
    user_id: whose dapp it is.
    """

    session: SessionState
    is_welcome: bool
    live_tokens: frozenset[int]
    user_id: int

    @property
    def allowed(self) -> SessionState:
        """The session, without scopes if the dapp may do nothing at present."""
        if self.is_welcome:
            return self.session
        return replace(self.session, scopes={}, expires_at=None)


@dataclass(frozen=True, slots=True)
class RequestOutcome:
    """The state of a consent request.

    outcome: the approved grant or the error, as JSON; b"" without either.
    """

    state: RequestState
    outcome: bytes


class WalletStore:
    """Reads dapps with their sessions, and requests.

    clock: Unix seconds, for the expiry of sessions.
    """

    def __init__(
        self, connections: Connections, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._clock = clock
        self._dapps: Lookup[tuple[int], DappState] = Lookup(
            connections, _DAPPS, [("dapp_id", INT8)], self._read_dapp
        )
        self._requests: Lookup[tuple[int], RequestOutcome] = Lookup(
            connections, _REQUESTS, [("request_id", INT8)], _read_request
        )

    async def dapp(self, dapp_id: int) -> DappState | None:
        """Return a dapp's state, None if the dapp does not exist.

        Raises: Unavailable.
        """
        return await self._dapps.get((dapp_id,))

    async def session(self, dapp_id: int) -> SessionState:
        """Return a dapp's session, with no scopes if there is none.

        It also has no scopes if the dapp is blocked or its user deactivated, although
        the stored session is unchanged.
        Raises: Unavailable.
        """
        state = await self.dapp(dapp_id)
        return SessionState(0, {}) if state is None else state.allowed

    async def request(self, request_id: int) -> RequestOutcome | None:
        """Return a request's state, None if the request does not exist.

        Raises: Unavailable.
        """
        return await self._requests.get((request_id,))

    def _read_dapp(self, row: Row) -> DappState:
        version, stored, changed_by, expires_us, is_welcome, tokens, user = row
        expires_at = None if expires_us is None else read_int8(expires_us) / 1e6
        is_over = expires_at is not None and expires_at <= self._clock()
        listed: list[StoredScope] = [] if is_over else orjson.loads(stored or b"[]")
        return DappState(
            session=SessionState(
                version=read_int8(version or b""),
                scopes=scopes.from_stored(listed),
                changed_by=(changed_by or b"").decode(),
                expires_at=expires_at,
            ),
            is_welcome=read_bool(is_welcome or b""),
            live_tokens=frozenset(map(int, (tokens or b"").decode().split(",")))
            if tokens
            else frozenset(),
            user_id=read_int8(user or b""),
        )


def _read_request(row: Row) -> RequestOutcome:
    state, outcome = row
    return RequestOutcome(RequestState((state or b"").decode()), outcome or b"")
