"""Fills the database with the keys and usage rows of a large provider, using SQL."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import NamedTuple

from django.core.management.color import no_style
from django.db import connection
from django.utils import timezone

from bench.turns import Say
from keys.charts.windows import floor
from keys.metering.meter import CLIENT_ERROR, DENIED, LIMITED, OK, SERVER_ERROR, TIMEOUT
from keys.models import ApiKey, KeyVersion, Span, UsageBucket, User
from keys.usage.tiers import KEEP

KEYS = 100_000
OWNERS = 50_000
ROWS = 3_000_000
"""Number of usage rows."""

BUSY = 1
"""Id of the key that calls all methods in every span. The others are used in turn."""

METHODS = [
    *("eth_blockNumber", "eth_call", "eth_chainId", "eth_getBlockByNumber"),
    *("eth_getBalance", "eth_getCode", "eth_getLogs", "eth_getStorageAt"),
    *("eth_getTransactionReceipt", "debug_traceBlockByHash"),
]
FAILURES = [CLIENT_ERROR, DENIED, LIMITED, SERVER_ERROR, TIMEOUT]
"""Outcomes besides `ok`: one for each of the first methods, in each minute of the
busy key."""

ROWS_OF_A_TURN = 4
"""Number of rows in a span of each key other than the busy one."""

_LATENCIES = "{0,0,0,0,0,0,2,40,310,620,270,90,30,9,4,2,1,1}"
"""A histogram with latencies of up to 0.13 s. It has about the length that is usual
for such rows."""


class _Tier(NamedTuple):
    """The rows of one span. The newest row is of the present time."""

    span: Span
    oldest: timedelta
    share: float
    """Fraction of all rows that have this span."""


TIERS = (
    _Tier(Span.DAY, timedelta(days=365), 0.16),
    _Tier(Span.HOUR, KEEP[Span.HOUR], 0.54),
    _Tier(Span.MINUTE, KEEP[Span.MINUTE], 0.30),
)

_STEPS = {
    "users": """
        INSERT INTO keys_user (id, email, password, is_superuser, is_staff, is_active,
            first_name, last_name, date_joined)
        SELECT i, 'owner' || i || '@customers.example', '!', false, false, i %% 100 > 0,
            '', '', now() - (i || ' minutes')::interval
        FROM generate_series(1, %(owners)s) i""",
    "keys": """
        INSERT INTO keys_apikey (id, owner_id, name, is_enabled, expires_at, staff_note,
            created_at, deleted_at)
        SELECT i, 1 + i %% %(owners)s, (ARRAY['dapp', 'indexer', 'backend', 'bot'])[1 + i %% 4]
            || ' ' || i, i %% 50 > 0,
            CASE WHEN i %% 3 = 0 THEN now() + ((i %% 400 - 20) || ' days')::interval END,
            '', now() - (i %% 700 || ' days')::interval,
            CASE WHEN i %% 40 = 7 THEN now() END
        FROM generate_series(1, %(keys)s) i""",
    "their networks": """
        INSERT INTO keys_apikey_networks (apikey_id, network_id)
        SELECT i, n.id FROM generate_series(1, %(keys)s) i, networks_network n
        WHERE i %% 2 = 0 AND (i + n.id) %% 4 > 0""",
    "secrets": """
        INSERT INTO keys_keyversion (id, api_key_id, digest, hint, created_at,
            expires_at, revoked_at, revoke_reason)
        SELECT 2 * i + v, i, encode(sha256((2 * i + v)::text::bytea), 'hex'),
            'nk_' || substr(md5(i::text), 1, 4) || '…' || substr(md5((2 * i + v)::text), 1, 4),
            now() - (i %% 300 || ' days')::interval,
            CASE WHEN i %% 5 = 0 THEN now() + ((i %% 90 - 10) || ' days')::interval END,
            CASE WHEN v = 1 OR i %% 30 = 0 THEN now() - interval '1 day' END, ''
        FROM generate_series(1, %(keys)s) i, generate_series(0, 1) v
        WHERE i %% 25 > 0 AND (v = 0 OR i %% 4 = 0)""",
    "their last uses": """
        INSERT INTO keys_keyversionuse (version_id, last_used_at)
        SELECT id, now() - (id %% 200 || ' days')::interval
        FROM keys_keyversion WHERE id %% 7 > 0""",
    "entitlements": """
        INSERT INTO keys_entitlement (api_key_id, network_id, capability, tracers,
            note, granted_at, expires_at)
        SELECT i, n.id, 'trace', '{callTracer,prestateTracer}', '', now(),
            CASE WHEN i %% 20 = 0 THEN now() + interval '30 days' END
        FROM generate_series(1, %(keys)s) i, networks_network n WHERE i %% 10 = 1""",
    "allowlists": """
        INSERT INTO keys_allowlistentry (api_key_id, kind, value)
        SELECT i, 'origin', 'https://dapp' || i || '.example'
        FROM generate_series(1, %(keys)s) i WHERE i %% 5 = 0""",
    "plans": """
        INSERT INTO keys_plan (slug, name, credits_per_second, credits_per_day, is_default)
        VALUES ('bench-free', 'Free', 100, 100000,
                NOT EXISTS (SELECT FROM keys_plan WHERE is_default)),
            ('bench-team', 'Team', 1000, 5000000, false)""",
    "terms of keys": """
        INSERT INTO keys_keylimits (api_key_id, plan_id, credits_per_day)
        SELECT i, CASE WHEN i %% 20 = 1 THEN plan.id END,
            CASE WHEN i %% 20 > 1 THEN 10000 + i END
        FROM generate_series(1, %(keys)s, 10) i, keys_plan plan WHERE slug = 'bench-team'""",
    "members": """
        INSERT INTO keys_membership (account_id, member_id, role, joined_at)
        SELECT i, 1 + i %% %(owners)s, (ARRAY['owner', 'developer', 'viewer'])[1 + i %% 3], now()
        FROM generate_series(1, %(owners)s - 1, 5) i""",
    "failed calls": """
        INSERT INTO keys_keyfailures (api_key_id, latest, unknown_methods)
        SELECT i, (SELECT jsonb_agg(jsonb_build_array(extract(epoch FROM now()) - j, 1,
                'eth_call', -32005, 'rate_limited')) FROM generate_series(1, 100) j),
            '{"eth_cal": [7, 1790000000]}'
        FROM generate_series(1, %(keys)s, 100) i""",
    "events": """
        INSERT INTO keys_keyevent (at, api_key_id, type, data)
        SELECT now() - (i %% 1000 || ' hours')::interval, 1 + i %% %(keys)s,
            (ARRAY['key.created', 'key.revealed', 'key.updated', 'key.rolled'])[1 + i %% 4], '{}'
        FROM generate_series(1, 5 * %(keys)s) i""",
    "requests": """
        INSERT INTO keys_accessrequest (api_key_id, network_id, tracers, reason,
            requested_at, status, answer)
        SELECT i, (SELECT min(id) FROM networks_network), '{}', 'to debug', now(),
            CASE WHEN i %% 1000 = 1 THEN 'pending' ELSE 'approved' END, ''
        FROM generate_series(1, %(keys)s, 10) i""",
}

_COLUMNS = """(api_key_id, span, start, network_id, method, outcome, calls, credits,
    duration_us, bytes_out, latencies)"""

_USAGE = f"""
    INSERT INTO keys_usagebucket {_COLUMNS}
    SELECT used.key, %(span)s, start, used.network, used.method, used.outcome, 1389,
        1389, 700000, 99999, '{_LATENCIES}'
    FROM generate_series(%(first)s::timestamptz, %(last)s, %(step)s)
        WITH ORDINALITY s (start, serial),
    LATERAL (
        SELECT %(busy)s::bigint AS key, n.id AS network, m.method, o.outcome
        FROM networks_network n,
            unnest(%(methods)s::text[]) WITH ORDINALITY m (method, i),
            unnest(%(outcomes)s::text[]) WITH ORDINALITY o (outcome, j)
        WHERE j = 1 OR j = i + 1
        UNION ALL
        SELECT 2 + (serial * 7919 + i / %(turn)s * %(stride)s) %% (%(keys)s - 1),
            (SELECT min(id) FROM networks_network),
            (%(methods)s::text[])[1 + (serial + i) %% 10],
            CASE WHEN i %% 23 = 0 THEN 'limited' ELSE 'ok' END
        FROM generate_series(0, %(rows)s - 1) i
    ) AS used"""
"""Inserts rows in the order of time, as a service does, so that the rows of a key are not
adjacent. The busy key has successful calls of each method, and failed calls of the first
methods, each with another outcome."""

_SUMS = {
    "usage of all keys together": f"""
        INSERT INTO keys_usagetotal {_COLUMNS.replace("api_key_id, ", "")}
        SELECT span, start, network_id, method, outcome, sum(calls), sum(credits),
            sum(duration_us), sum(bytes_out), '{_LATENCIES}'
        FROM keys_usagebucket GROUP BY 1, 2, 3, 4, 5""",
    "days of keys": """
        INSERT INTO keys_dailyuse (day, api_key_id, calls, failed, credits)
        SELECT (start AT TIME ZONE 'UTC')::date, api_key_id, sum(calls),
            coalesce(sum(calls) FILTER (WHERE outcome <> 'ok'), 0), sum(credits)
        FROM keys_usagebucket WHERE span = 86400 AND start > now() - interval '90 days'
        GROUP BY 1, 2""",
    "uses of today": """
        INSERT INTO keys_dailyuse (day, api_key_id, calls, failed, credits)
        SELECT (now() AT TIME ZONE 'UTC')::date, i, 1 + i %% 700, i %% 7, 1 + i %% 79000
        FROM generate_series(1, %(keys)s) i WHERE i %% 2 = 0
        ON CONFLICT DO NOTHING""",
}


def fill(say: Say) -> None:
    """Insert all keys and usage rows. This takes a minute or two."""
    start = time.monotonic()

    def run(what: str, statement: str, **values: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute(statement, values)
            say(f"  {time.monotonic() - start:4.0f} s  {what}: {cursor.rowcount:,}")

    for what, statement in _STEPS.items():
        run(what, statement, keys=KEYS, owners=OWNERS)
    with _without_indexes():
        for tier in TIERS:
            what = f"usage by {tier.span.label.lower()}"
            run(what, _USAGE, **_values(tier))
    for what, statement in _SUMS.items():
        run(what, statement, keys=KEYS)
    with connection.cursor() as cursor:
        for reset in connection.ops.sequence_reset_sql(
            no_style(), [User, ApiKey, KeyVersion]
        ):
            cursor.execute(reset)
        cursor.execute("VACUUM ANALYZE")
    say(f"  {time.monotonic() - start:4.0f} s  indexes and statistics")


def _values(tier: _Tier) -> dict[str, object]:
    """Return the parameters for the rows of one span."""
    step = timedelta(seconds=tier.span)
    now = timezone.now()
    rows = int(ROWS * tier.share / (tier.oldest // step))
    return {
        "busy": BUSY,
        "keys": KEYS,
        "span": int(tier.span),
        "step": step,
        "first": floor(now - tier.oldest, step),
        "last": floor(now, step),
        "methods": METHODS,
        "outcomes": [OK, *FAILURES],
        "rows": rows,
        "turn": ROWS_OF_A_TURN,
        "stride": KEYS * ROWS_OF_A_TURN // (rows + ROWS_OF_A_TURN),
    }


@contextmanager
def _without_indexes() -> Iterator[None]:
    """Drop the indexes of the usage table, and create them after the `with` block.

    This takes half the time of inserting with indexes.
    """
    constraints, indexes = UsageBucket._meta.constraints, UsageBucket._meta.indexes
    with connection.schema_editor() as editor:
        for constraint in constraints:
            editor.remove_constraint(UsageBucket, constraint)
        for index in indexes:
            editor.remove_index(UsageBucket, index)
    yield
    with connection.schema_editor() as editor:
        for constraint in constraints:
            editor.add_constraint(UsageBucket, constraint)
        for index in indexes:
            editor.add_index(UsageBucket, index)
