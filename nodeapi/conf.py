"""Settings of the node. Their defaults are declared in config/variables/."""

from __future__ import annotations

from django.conf import settings

from nodeapi.tracing.pool_limits import PoolLimits


def cache_bytes() -> int:
    """Return the memory of each process for the cache of immutable answers, in bytes.

    NODEAPI_CACHE_BYTES; 0 disables the cache.
    """
    return settings.NODEAPI_CACHE_BYTES


def database_connections() -> int:
    """Return the number of connections that each process opens for look-ups.

    NODEAPI_DATABASE_CONNECTIONS. Each process opens one more for a short time to write
    statistics.
    """
    return settings.NODEAPI_DATABASE_CONNECTIONS


def log_connections() -> int:
    """Return the number of connections that each process opens for searches for logs.

    NODEAPI_LOG_CONNECTIONS.
    """
    return settings.NODEAPI_LOG_CONNECTIONS


def max_logs() -> int:
    """Return the maximum number of logs that a search returns: NODEAPI_MAX_LOGS."""
    return settings.NODEAPI_MAX_LOGS


def query_timeout() -> float:
    """Return the seconds after which a look-up is cancelled.

    NODEAPI_QUERY_TIMEOUT; a look-up takes milliseconds, even on a busy server.
    """
    return settings.NODEAPI_QUERY_TIMEOUT


def max_body_bytes() -> int:
    """Return the maximum size of a request body: NODEAPI_MAX_BODY_BYTES."""
    return settings.NODEAPI_MAX_BODY_BYTES


def max_batch_calls() -> int:
    """Return the maximum number of calls in a batch: NODEAPI_MAX_BATCH_CALLS."""
    return settings.NODEAPI_MAX_BATCH_CALLS


def max_batch_response_bytes() -> int:
    """Return the size of a batch's results beyond which its other calls are refused.

    NODEAPI_MAX_BATCH_RESPONSE_BYTES.
    """
    return settings.NODEAPI_MAX_BATCH_RESPONSE_BYTES


def batches_in_progress_bytes() -> int:
    """Return the bytes that all batches in progress can reserve in each process.

    NODEAPI_BATCHES_IN_PROGRESS_BYTES.
    """
    return settings.NODEAPI_BATCHES_IN_PROGRESS_BYTES


def request_timeout() -> float:
    """Return the seconds after which a request times out: NODEAPI_REQUEST_TIMEOUT."""
    return settings.NODEAPI_REQUEST_TIMEOUT


def slow_request_timeout() -> float:
    """Return the timeout of requests with slow methods, in seconds to the first byte.

    NODEAPI_SLOW_REQUEST_TIMEOUT; the trace of a block, or a batch with several, may wait
    for other traces. Most proxies and clients time out after the default of 120 s.
    """
    return settings.NODEAPI_SLOW_REQUEST_TIMEOUT


def failed_keys_per_minute() -> int:
    """Return how many requests with an invalid key an address can make per minute.

    NODEAPI_FAILED_KEYS_PER_MINUTE; also the number that is accepted in one burst.
    0: no limit.
    """
    return settings.NODEAPI_FAILED_KEYS_PER_MINUTE


def support_contact() -> str:
    """Return the contact that errors name to customers who lack an entitlement.

    NODEAPI_SUPPORT_CONTACT; an email address, a URL or words.
    """
    return settings.NODEAPI_SUPPORT_CONTACT


def testing_methods() -> bool:
    """Return whether methods for tests of clients are served: NODEAPI_TESTING_METHODS."""
    return settings.NODEAPI_TESTING_METHODS


def trace_limits() -> PoolLimits:
    """Return the limits of traces on demand in each process."""
    return PoolLimits(
        workers=settings.NODEAPI_TRACE_WORKERS,
        per_key=settings.NODEAPI_TRACE_CONCURRENCY,
        seconds=settings.NODEAPI_TRACE_SECONDS,
        memory_bytes=settings.NODEAPI_TRACE_MEMORY_BYTES,
        result_bytes=settings.NODEAPI_TRACE_RESULT_BYTES,
        spool_bytes=settings.NODEAPI_TRACE_SPOOL_BYTES,
        owner_bytes=settings.NODEAPI_TRACE_OWNER_BYTES,
        tasks_per_key=settings.NODEAPI_CALL_CONCURRENCY,
        outage_file=settings.OUTAGE_FILE,
    )


def trace_timeout() -> float:
    """Return the seconds for each traced transaction, unless the caller passes a number.

    NODEAPI_TRACE_TIMEOUT.
    """
    return settings.NODEAPI_TRACE_TIMEOUT


def call_gas() -> int:
    """Return the most gas that one call can use, 0 for no limit: NODEAPI_CALL_GAS."""
    return settings.NODEAPI_CALL_GAS


def call_timeout() -> float:
    """Return the seconds for the execution of one call: NODEAPI_CALL_TIMEOUT."""
    return settings.NODEAPI_CALL_TIMEOUT


def record_limit_bytes() -> int:
    """Return the maximum call data in the trace record of one transaction, in bytes.

    NODEAPI_RECORD_LIMIT_BYTES; a transaction with more call data has no traces.
    """
    return settings.NODEAPI_RECORD_LIMIT_BYTES


def is_demo() -> bool:
    """Return whether this is the demonstration that `manage.py serve` starts: DEMO."""
    return settings.DEMO


def home_api_key() -> str:
    """Return the API key that the home page shows to everyone, "" for none.

    HOME_API_KEY. Its limits bound what all visitors together can do with it.
    """
    return settings.HOME_API_KEY
