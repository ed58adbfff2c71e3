"""What a request may do with the key it came with.

A key is answered from memory for a few seconds, and a change of it is announced by
the database, so that a look-up is rare and a revocation still takes effect at once.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import TypeVar

import orjson

from keys.allowlists import Allowlists, make_allowlists
from keys.errors import KeyDisabled, KeyExpired, KeyInvalid, KeyRevoked, OfKnownKey
from keys.format import is_well_formed
from keys.limiter.gcra import Limits
from keys.permits import NO_PERMITS, Permit, Permits
from keys.plans import Terms, effective_limits
from postgres.connections import Connections
from postgres.errors import Unavailable
from postgres.listener import Listener
from postgres.lookup import Lookup
from postgres.statement import TEXT, Row, read_bool, read_int8

_T = TypeVar("_T")

CHANNEL = "portcullis_key"
"""Where changes are announced; the payload is the id of the API key."""

FRESH_SECONDS = 15.0
"""How long a key is answered from memory; changes are announced besides."""

REFUSAL_SECONDS = 5.0
"""How long a refusal is: shorter, as a customer who was let in again is waiting."""

OUTAGE_SECONDS = 600.0
"""How much longer a known key is let in while the database does not answer."""

MAX_ENTRIES = 10_000
"""Keys that are remembered, and unknown keys that are; about 1 kB each."""

_BY_DIGEST = """
    SELECT k.n, v.api_key_id, v.hint, v.revoked_at IS NOT NULL,
        (extract(epoch FROM least(v.expires_at, a.expires_at)) * 1000000)::int8,
        a.is_enabled AND u.is_active,
        (SELECT string_agg(an.network_id::text, ',')
         FROM keys_apikey_networks an WHERE an.apikey_id = a.id),
        (SELECT json_agg(json_build_array(e.network_id, e.capability, e.tracers,
            extract(epoch FROM e.expires_at)))
         FROM keys_entitlement e WHERE e.api_key_id = a.id),
        v.id,
        (SELECT json_agg(json_build_array(l.kind, l.value))
         FROM keys_allowlistentry l WHERE l.api_key_id = a.id),
        own.credits_per_second::int8, own.burst::int8, own.credits_per_day::int8,
        p.credits_per_second::int8, p.burst::int8, p.credits_per_day::int8
    FROM k
    JOIN keys_keyversion v ON v.digest = k.digest
    JOIN keys_apikey a ON a.id = v.api_key_id
    JOIN keys_user u ON u.id = a.owner_id
    LEFT JOIN keys_keylimits own ON own.api_key_id = a.id
    LEFT JOIN keys_plan p
        ON p.id = own.plan_id OR (own.plan_id IS NULL AND p.is_default)
"""


@dataclass(frozen=True, slots=True)
class Grant:
    """What a key opens.

    networks: ids, None for all.
    permits: what was granted besides; each has an expiry of its own.
    expires_at: Unix seconds, None for never.
    allowlists: None for a key without any, as most are.
    limits: what may be spent; None for a key without any.
    version_id: the row of the secret.
    """

    api_key_id: int
    hint: str
    networks: frozenset[int] | None
    permits: Permits
    expires_at: float | None
    allowlists: Allowlists | None = None
    limits: Limits | None = None
    version_id: int = 0

    def allows_network(self, network_id: int) -> bool:
        """Return whether requests to a network are let in."""
        return self.networks is None or network_id in self.networks


@dataclass(slots=True)
class _Entry:
    """A key as it was read, and until when (monotonic seconds) that is fresh."""

    grant: Grant
    is_revoked: bool
    is_enabled: bool
    fresh_until: float = 0.0

    @property
    def seconds(self) -> float:
        refused = self.is_revoked or not self.is_enabled
        return REFUSAL_SECONDS if refused else FRESH_SECONDS


class Grants:
    """Lets keys in.

    clock: monotonic seconds, for the ages of what is remembered.
    wall_clock: Unix seconds, for the expiry of keys.
    """

    def __init__(
        self,
        connections: Connections,
        listener: Listener,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._lookup: Lookup[tuple[str], _Entry] = Lookup(
            connections, _BY_DIGEST, [("digest", TEXT)], _entry
        )
        self._clock = clock
        self._wall_clock = wall_clock
        self._entries: OrderedDict[bytes, _Entry] = OrderedDict()
        self._unknown: OrderedDict[bytes, float] = OrderedDict()
        self._changes = 0
        self.hits = 0
        """Requests whose key was answered from memory."""
        self.misses = 0
        """Those for which the database was asked."""
        listener.listen(CHANNEL, self._changed)
        listener.at_epoch(self._may_have_missed)

    def resolve(self, key: str) -> Grant | Awaitable[Grant]:
        """Return what a key opens: at once when it is remembered.

        Raises, now or when awaited: KeyInvalid, KeyRevoked, KeyExpired, KeyDisabled;
            Unavailable when the database is needed and does not answer.
        """
        # Only what was well-formed is remembered, hence the cheaper question first.
        digest = _digest(key)
        entry = self._entries.get(digest)
        now = self._clock()
        if entry is not None and now < entry.fresh_until:
            self.hits += 1
            return self._admit(entry)
        if self._unknown.get(digest, 0.0) > now or not is_well_formed(key):
            raise KeyInvalid
        return self._read(digest, entry)

    def remembers(self, key: str) -> bool:
        """Return whether a key, fresh or not, in force or not, is remembered."""
        return _digest(key) in self._entries

    async def _read(self, digest: bytes, old: _Entry | None) -> Grant:
        changes = self._changes
        self.misses += 1
        try:
            entry = await self._lookup.get((digest.hex(),))
        except Unavailable:
            if old is None or self._clock() > old.fresh_until + OUTAGE_SECONDS:
                raise
            return self._admit(old)
        now = self._clock()
        if entry is None:
            self._entries.pop(digest, None)
            _remember(self._unknown, digest, now + REFUSAL_SECONDS)
            raise KeyInvalid
        # What was read before a change was announced may be what was changed.
        if changes == self._changes:
            entry.fresh_until = now + entry.seconds
            _remember(self._entries, digest, entry)
        return self._admit(entry)

    def _admit(self, entry: _Entry) -> Grant:
        grant = entry.grant
        try:
            if entry.is_revoked:
                raise KeyRevoked(grant.version_id)
            if grant.expires_at is not None and grant.expires_at <= self._wall_clock():
                raise KeyExpired(grant.expires_at)
            if not entry.is_enabled:
                raise KeyDisabled
        except OfKnownKey as error:
            error.api_key_id = grant.api_key_id
            raise
        return grant

    def _changed(self, payload: str) -> None:
        """Forget what is remembered of one API key."""
        self._changes += 1
        changed = [
            digest
            for digest, entry in self._entries.items()
            if str(entry.grant.api_key_id) == payload
        ]
        for digest in changed:
            del self._entries[digest]

    def _may_have_missed(self) -> None:
        """Trust nothing that was read before; keep it for an outage."""
        self._changes += 1
        now = self._clock()
        for entry in self._entries.values():
            entry.fresh_until = min(entry.fresh_until, now)
        self._unknown.clear()


def _digest(key: str) -> bytes:
    return sha256(key.encode("utf-8", "surrogatepass")).digest()


def _remember(memory: OrderedDict[bytes, _T], digest: bytes, value: _T) -> None:
    """Keep the newest MAX_ENTRIES; what is in use is read, hence kept, again soon."""
    memory[digest] = value
    memory.move_to_end(digest)
    if len(memory) > MAX_ENTRIES:
        memory.popitem(last=False)


def _entry(row: Row) -> _Entry:
    """Make an entry of what the query returns."""
    networks = row[5]
    return _Entry(
        grant=Grant(
            api_key_id=read_int8(row[0] or b""),
            hint=(row[1] or b"").decode(),
            networks=(
                None
                if networks is None
                else frozenset(map(int, networks.decode().split(",")))
            ),
            permits=_permits(row[6]),
            expires_at=None if row[3] is None else read_int8(row[3]) / 1e6,
            allowlists=_allowlists(row[8]),
            limits=_limits(row[9:15]),
            version_id=read_int8(row[7] or b""),
        ),
        is_revoked=read_bool(row[2] or b""),
        is_enabled=read_bool(row[4] or b""),
    )


def _limits(columns: Row) -> Limits | None:
    """Make the limits of a key out of its own terms and its plan's."""
    numbers = [None if column is None else read_int8(column) for column in columns]
    return effective_limits(Terms(*numbers[:3]), Terms(*numbers[3:]))


def _allowlists(column: bytes | None) -> Allowlists | None:
    """Make the lists of [[kind, value], …]."""
    return None if column is None else make_allowlists(orjson.loads(column))


def _permits(column: bytes | None) -> Permits:
    """Make permits of [[network id, capability, tracers, expires at], …]."""
    if column is None:
        return NO_PERMITS
    return {
        (network_id, capability): Permit(frozenset(tracers), expires_at)
        for network_id, capability, tracers, expires_at in orjson.loads(column)
    }
