"""Authentication: what an API key grants access to.

Keys are cached for a few seconds. Changes of keys are appended to the outbox, so look-ups
are rare and a revocation still takes effect within milliseconds.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from typing import TypeVar

import orjson

from jsonrpc.later import Later
from keys.allowlists import Allowlists, make_allowlists
from keys.errors import KeyDisabled, KeyExpired, KeyInvalid, KeyRevoked, OfKnownKey
from keys.format import is_well_formed
from keys.limiter.gcra import Limits
from keys.permits import NO_PERMITS, Permit, Permits
from keys.plans import Terms, effective_limits
from keys.unknown_keys import UnknownKeys
from outbox.streams import ACCESS
from outbox.subscriber import Subscriber
from postgres.connections import Connections
from postgres.errors import Unavailable
from postgres.lookup import Lookup
from postgres.statement import TEXT, Row, read_bool, read_int8

_T = TypeVar("_T")

FRESH_SECONDS = 15.0
"""How long a key is cached. A change of the key removes it earlier."""

REFUSAL_SECONDS = 5.0
"""How long a rejection is cached. It is shorter than FRESH_SECONDS, because customers
retry a key after it was enabled."""

OUTAGE_SECONDS = 600.0
"""How much longer a cached key is accepted while the database is unavailable."""

MAX_ENTRIES = 10_000
"""Most cached keys, and most cached unknown keys; about 1 kB each."""

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
        p.credits_per_second::int8, p.burst::int8, p.credits_per_day::int8,
        a.owner_id::int8
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
    """The access that an API key grants.

    networks: ids, or None for all networks.
    permits: capabilities on single networks, each with its own expiry.
    expires_at: Unix seconds, or None if the key never expires.
    allowlists: None if all lists are empty.
    limits: None if the key has no limits.
    version_id: id of the KeyVersion.
    owner_id: id of the customer's account.
    """

    api_key_id: int
    hint: str
    networks: frozenset[int] | None
    permits: Permits
    expires_at: float | None
    allowlists: Allowlists | None = None
    limits: Limits | None = None
    version_id: int = 0
    owner_id: int = 0

    def allows_network(self, network_id: int) -> bool:
        """Return whether the key is valid for a network."""
        return self.networks is None or network_id in self.networks


@dataclass(slots=True)
class _Entry:
    """A key in the cache.

    fresh_until: monotonic seconds; afterwards the key is looked up again.
    admitted: the grant as a result, created once for all requests.
    """

    grant: Grant
    is_revoked: bool
    is_enabled: bool
    fresh_until: float = 0.0
    admitted: Later[Grant] = field(init=False)

    def __post_init__(self) -> None:
        self.admitted = Later(self.grant)

    @property
    def seconds(self) -> float:
        refused = self.is_revoked or not self.is_enabled
        return REFUSAL_SECONDS if refused else FRESH_SECONDS


class Grants:
    """Authenticates API keys, with a cache.

    unknown_keys: limits the lookups of addresses that send unknown keys; None for no limit.
    clock: monotonic seconds, for the ages of cache entries.
    wall_clock: Unix seconds, for the expiry of keys.
    """

    def __init__(
        self,
        connections: Connections,
        subscriber: Subscriber,
        unknown_keys: UnknownKeys | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._lookup: Lookup[tuple[str], _Entry] = Lookup(
            connections, _BY_DIGEST, [("digest", TEXT)], _entry
        )
        self._unknown_keys = unknown_keys or UnknownKeys(per_minute=0)
        self._clock = clock
        self._wall_clock = wall_clock
        self._entries: OrderedDict[bytes, _Entry] = OrderedDict()
        self._unknown: OrderedDict[bytes, float] = OrderedDict()
        self._changes = 0
        self.hits = 0
        """Cache hits."""
        self.misses = 0
        """Cache misses, which need a query."""
        self._subscriber = subscriber
        subscriber.subscribe(ACCESS, self._changed, self._may_have_missed)
        subscriber.at_epoch(self._may_have_missed)
        subscriber.at_lapse(self._may_have_missed)

    def resolve(self, key: str, client: str | None = None) -> Later[Grant]:
        """Return the access that a key grants, without I/O on a cache hit.

        client: the IP address that sent the key, whose lookups are limited after too
            many unknown keys; see `UnknownKeys.look_up`.
        Fails with KeyInvalid, KeyRevoked, KeyExpired, KeyDisabled; Unavailable if the
            database is needed and can't be reached.
        """
        # The cache has well-formed keys only, hence the cheaper check comes first.
        digest = _digest(key)
        entry = self._entries.get(digest)
        now = self._clock()
        if entry is not None and now < entry.fresh_until:
            self.hits += 1
            return self._admit(entry)
        if self._unknown.get(digest, 0.0) > now or not is_well_formed(key):
            return Later.failed(KeyInvalid())
        return self._unknown_keys.look_up(client, partial(self._read, digest, entry))

    def is_cached(self, key: str) -> bool:
        """Return whether the cache has a key, be it valid, revoked or outdated."""
        return _digest(key) in self._entries

    def _read(self, digest: bytes, old: _Entry | None) -> Later[Grant]:
        self.misses += 1
        found = Later.from_future(self._lookup.get((digest.hex(),)))
        return found.handle(partial(self._take, digest, old, self._changes))

    def _take(
        self,
        digest: bytes,
        old: _Entry | None,
        changes: int,
        found: Later[_Entry | None],
    ) -> Later[Grant]:
        """Cache the result of a look-up, and return the grant.

        old: the expired cache entry. changes: reported before the look-up.
        """
        now = self._clock()
        error = found.error
        if error is not None:
            is_outage = isinstance(error, Unavailable)
            if (
                is_outage
                and old is not None
                and now <= old.fresh_until + OUTAGE_SECONDS
            ):
                return self._admit(old)
            return Later.failed(error)
        entry = found.result()
        if entry is None:
            self._entries.pop(digest, None)
            _add(self._unknown, digest, now + REFUSAL_SECONDS)
            return Later.failed(KeyInvalid())
        # A row that was read before a change was reported may be outdated.
        if changes == self._changes:
            # While changes may be unknown, it is used in an outage only.
            is_current = self._subscriber.epoch != 0
            entry.fresh_until = now + entry.seconds if is_current else now
            _add(self._entries, digest, entry)
        return self._admit(entry)

    def _admit(self, entry: _Entry) -> Later[Grant]:
        grant = entry.grant
        error: OfKnownKey
        if entry.is_revoked:
            error = KeyRevoked(grant.version_id)
        elif grant.expires_at is not None and grant.expires_at <= self._wall_clock():
            error = KeyExpired(grant.expires_at)
        elif not entry.is_enabled:
            error = KeyDisabled()
        else:
            return entry.admitted
        error.api_key_id = grant.api_key_id
        return Later.failed(error)

    def _changed(self, subject: str) -> None:
        """Remove an API key from the cache; after a change of a plan, look all up."""
        kind, _, api_key_id = subject.partition(":")
        if kind == "plan":
            self._may_have_missed()
        if kind != "key":
            return
        self._changes += 1
        changed = [
            digest
            for digest, entry in self._entries.items()
            if str(entry.grant.api_key_id) == api_key_id
        ]
        for digest in changed:
            del self._entries[digest]

    def _may_have_missed(self) -> None:
        """Mark all entries as outdated. They are still used during an outage."""
        self._changes += 1
        now = self._clock()
        for entry in self._entries.values():
            entry.fresh_until = min(entry.fresh_until, now)
        self._unknown.clear()


def _digest(key: str) -> bytes:
    return sha256(key.encode("utf-8", "surrogatepass")).digest()


def _add(memory: OrderedDict[bytes, _T], digest: bytes, value: _T) -> None:
    """Add a cache entry, and evict the oldest one beyond MAX_ENTRIES."""
    memory[digest] = value
    memory.move_to_end(digest)
    if len(memory) > MAX_ENTRIES:
        memory.popitem(last=False)


def _entry(row: Row) -> _Entry:
    """Convert a row of `_BY_DIGEST` to a cache entry."""
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
            owner_id=read_int8(row[15] or b""),
        ),
        is_revoked=read_bool(row[2] or b""),
        is_enabled=read_bool(row[4] or b""),
    )


def _limits(columns: Row) -> Limits | None:
    """Return the limits of a key from its own terms and its plan's."""
    numbers = [None if column is None else read_int8(column) for column in columns]
    return effective_limits(Terms(*numbers[:3]), Terms(*numbers[3:]))


def _allowlists(column: bytes | None) -> Allowlists | None:
    """Parse allowlists from JSON: [[kind, value], …]."""
    return None if column is None else make_allowlists(orjson.loads(column))


def _permits(column: bytes | None) -> Permits:
    """Parse permits from JSON: [[network id, capability, tracers, expires at], …]."""
    if column is None:
        return NO_PERMITS
    return {
        (network_id, capability): Permit(frozenset(tracers), expires_at)
        for network_id, capability, tracers, expires_at in orjson.loads(column)
    }
