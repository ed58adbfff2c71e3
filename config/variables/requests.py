"""JSON-RPC requests."""

from __future__ import annotations

from config.env import Group, boolean, count, duration, size, text

REQUESTS = Group("JSON-RPC requests")

NODEAPI_MAX_BODY_BYTES = REQUESTS.variable(
    "NODEAPI_MAX_BODY_BYTES",
    count,
    5 * 2**20,
    "Maximum size of a request body. The default is geth's limit.",
)

NODEAPI_MAX_BATCH_CALLS = REQUESTS.variable(
    "NODEAPI_MAX_BATCH_CALLS",
    count,
    1000,
    "Maximum number of calls in a batch. The default is geth's limit.",
)

NODEAPI_MAX_BATCH_RESPONSE_BYTES = REQUESTS.variable(
    "NODEAPI_MAX_BATCH_RESPONSE_BYTES",
    count,
    25_000_000,
    "Size of a batch's results beyond which its other calls are rejected. The default is"
    " geth's limit.",
)

NODEAPI_BATCHES_IN_PROGRESS_BYTES = REQUESTS.variable(
    "NODEAPI_BATCHES_IN_PROGRESS_BYTES",
    count,
    256 * 2**20,
    "Memory that batches in progress can reserve in each worker. Other batches wait."
    " The default is enough for ten batches of the maximum size.",
)

NODEAPI_REQUEST_TIMEOUT = REQUESTS.variable(
    "NODEAPI_REQUEST_TIMEOUT",
    duration,
    30.0,
    "Seconds after which a request times out. The default is geth's limit.",
)

NODEAPI_SLOW_REQUEST_TIMEOUT = REQUESTS.variable(
    "NODEAPI_SLOW_REQUEST_TIMEOUT",
    duration,
    120.0,
    "Seconds after which a request with slow methods, such as traces, times out. It"
    " applies until the first byte of the response.",
)

NODEAPI_CACHE_BYTES = REQUESTS.variable(
    "NODEAPI_CACHE_BYTES",
    size,
    256 * 2**20,
    "Memory of each worker for the cache of immutable answers. The default holds about"
    " 100 000 small answers. 0: no cache.",
)

NODEAPI_DATABASE_CONNECTIONS = REQUESTS.variable(
    "NODEAPI_DATABASE_CONNECTIONS",
    count,
    4,
    "PostgreSQL connections of each worker for look-ups. Concurrent look-ups are merged"
    " into one query, so that more connections only make the queries smaller.",
)

NODEAPI_LOG_CONNECTIONS = REQUESTS.variable(
    "NODEAPI_LOG_CONNECTIONS",
    count,
    2,
    "PostgreSQL connections of each worker for searches for logs, which can take as long"
    " as `NODEAPI_QUERY_TIMEOUT`. They are opened when they are needed.",
)

NODEAPI_MAX_LOGS = REQUESTS.variable(
    "NODEAPI_MAX_LOGS",
    count,
    10_000,
    "Maximum number of logs that a search in several blocks returns. Beyond it, the error"
    " names a range with fewer logs. The default is Infura's limit.",
)

NODEAPI_QUERY_TIMEOUT = REQUESTS.variable(
    "NODEAPI_QUERY_TIMEOUT",
    duration,
    5.0,
    "Seconds after which a database query is cancelled and its requests are answered"
    " with status 503.",
)

NODEAPI_FAILED_KEYS_PER_MINUTE = REQUESTS.variable(
    "NODEAPI_FAILED_KEYS_PER_MINUTE",
    size,
    60,
    "Requests with an unknown or malformed key that one client address can make per"
    " minute, in each worker. 0: no limit.",
)

NODEAPI_SUPPORT_CONTACT = REQUESTS.variable(
    "NODEAPI_SUPPORT_CONTACT",
    text,
    "the provider's support",
    "How customers reach support: an email address, a URL or other text. Errors show it"
    " to customers whose key lacks an entitlement.",
)

NODEAPI_TESTING_METHODS = REQUESTS.variable(
    "NODEAPI_TESTING_METHODS",
    boolean,
    False,
    "Whether `testing_buildBlockV1` is served, to all keys. Only for tests: it executes"
    " any transactions that a customer sends.",
)
