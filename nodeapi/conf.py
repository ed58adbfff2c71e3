"""Settings of the node, with their defaults."""

from __future__ import annotations

from django.conf import settings

from nodeapi.tracers.record import RECORD_LIMIT_BYTES
from nodeapi.tracing.pool import PoolLimits


def cache_bytes() -> int:
    """Return the memory of each process for answers that never change.

    NODEAPI_CACHE_BYTES; 256 MiB holds 100 000 small answers. 0: every answer is read
    from the database.
    """
    return int(getattr(settings, "NODEAPI_CACHE_BYTES", 256 * 2**20))


def database_connections() -> int:
    """Return how many connections each process opens at most for look-ups.

    NODEAPI_DATABASE_CONNECTIONS; a few are enough, since look-ups are merged: with
    more of them the queries only become smaller. One more listens, and
    one comes and goes that writes statistics.
    """
    return int(getattr(settings, "NODEAPI_DATABASE_CONNECTIONS", 4))


def query_timeout() -> float:
    """Return the seconds after which a look-up is given up.

    NODEAPI_QUERY_TIMEOUT; a look-up takes milliseconds, even on a busy server.
    """
    return float(getattr(settings, "NODEAPI_QUERY_TIMEOUT", 5.0))


def max_body_bytes() -> int:
    """Return the longest body of a request that is read.

    NODEAPI_MAX_BODY_BYTES; 5 MiB is geth's limit.
    """
    return int(getattr(settings, "NODEAPI_MAX_BODY_BYTES", 5 * 2**20))


def max_batch_calls() -> int:
    """Return how many calls a batch may hold.

    NODEAPI_MAX_BATCH_CALLS; 1000 is geth's limit.
    """
    return int(getattr(settings, "NODEAPI_MAX_BATCH_CALLS", 1000))


def max_batch_response_bytes() -> int:
    """Return after how many bytes of results the rest of a batch is refused.

    NODEAPI_MAX_BATCH_RESPONSE_BYTES; 25 000 000 is geth's limit.
    """
    return int(getattr(settings, "NODEAPI_MAX_BATCH_RESPONSE_BYTES", 25_000_000))


def request_timeout() -> float:
    """Return the seconds within which a request is answered.

    NODEAPI_REQUEST_TIMEOUT; 30 is geth's limit.
    """
    return float(getattr(settings, "NODEAPI_REQUEST_TIMEOUT", 30.0))


def slow_request_timeout() -> float:
    """Return the seconds within which the answer begins where a method is slow.

    NODEAPI_SLOW_REQUEST_TIMEOUT; a block's trace, or several in a batch, may have to
    wait for others. Most proxies and clients give up after as long.
    """
    return float(getattr(settings, "NODEAPI_SLOW_REQUEST_TIMEOUT", 120.0))


def failed_keys_per_minute() -> int:
    """Return how many requests with keys that nobody has an address may make.

    NODEAPI_FAILED_KEYS_PER_MINUTE; as many at once as well. A misconfigured program is
    told what is wrong often enough, and a flood costs little. 0: any number.
    """
    return int(getattr(settings, "NODEAPI_FAILED_KEYS_PER_MINUTE", 60))


def support_contact() -> str:
    """Return whom a customer is told to ask for what his key was not granted.

    NODEAPI_SUPPORT_CONTACT; an e-mail address, a URL or words.
    """
    return str(getattr(settings, "NODEAPI_SUPPORT_CONTACT", "the provider's support"))


def trace_limits() -> PoolLimits:
    """Return what traces that are executed on demand may take, in each process.

    NODEAPI_TRACE_WORKERS, NODEAPI_TRACE_CONCURRENCY (of one key), NODEAPI_TRACE_SECONDS
    (of a whole trace), NODEAPI_TRACE_MEMORY_BYTES (of one worker),
    NODEAPI_TRACE_RESULT_BYTES (of one answer), NODEAPI_TRACE_SPOOL_BYTES (of all
    answers that wait in files, those made of records too). The defaults are those of
    `PoolLimits`.
    """
    names = {
        "workers": "WORKERS",
        "per_owner": "CONCURRENCY",
        "seconds": "SECONDS",
        "memory_bytes": "MEMORY_BYTES",
        "result_bytes": "RESULT_BYTES",
        "spool_bytes": "SPOOL_BYTES",
    }
    given = {
        field: getattr(settings, f"NODEAPI_TRACE_{name}")
        for field, name in names.items()
        if hasattr(settings, f"NODEAPI_TRACE_{name}")
    }
    return PoolLimits(**given)


def trace_timeout() -> float:
    """Return the seconds that tracing a transaction may take if the caller names none.

    NODEAPI_TRACE_TIMEOUT; 5 is geth's default.
    """
    return float(getattr(settings, "NODEAPI_TRACE_TIMEOUT", 5.0))


def record_limit_bytes() -> int:
    """Return how much data of one transaction's calls is recorded when it is imported.

    NODEAPI_RECORD_LIMIT_BYTES; 64 MiB is ten times what a transaction of 30 million gas
    calls with unless it is made for that. Of one with more there are no traces.
    """
    return int(getattr(settings, "NODEAPI_RECORD_LIMIT_BYTES", RECORD_LIMIT_BYTES))
