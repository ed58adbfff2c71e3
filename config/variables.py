"""The environment variables of the service, with their defaults and documentation.

`manage.py document_settings` writes docs/settings.md from these declarations.
"""

from __future__ import annotations

import os
from ipaddress import ip_address
from pathlib import Path

from config.database_url import database_address
from config.env import (
    BASE_DIR,
    Choice,
    Group,
    InvalidSetting,
    boolean,
    count,
    duration,
    size,
    text,
    words,
)
from config.setting_types import (
    allowed_hosts,
    base_url,
    host,
    ipv4,
    mail_address,
    origins,
    port,
    proxies,
    redis_address,
    sender,
    slug,
)

SERVICES = Group("Processes and services")

HOST = SERVICES.variable(
    "HOST", host, "127.0.0.1", "Address on which `manage.py web` listens."
)
PORT = SERVICES.variable("PORT", port, 8000, "TCP port for all HTTP requests.")
WEB_CONCURRENCY = SERVICES.variable(
    "WEB_CONCURRENCY",
    count,
    1,
    "Number of worker processes. Use one per processor core.",
)
VAR_DIR = SERVICES.variable(
    "VAR_DIR",
    text,
    str(BASE_DIR / "var"),
    "Folder for all files that the service writes, the embedded databases included.",
    "`var` in the clone",
)
DATABASE_URL = SERVICES.variable(
    "DATABASE_URL",
    database_address,
    "",
    "PostgreSQL: `postgres://user:password@host:port/name?sslmode=…`,"
    " with percent-encoded parts.",
    "embedded PostgreSQL",
)
DATABASE_POOL = SERVICES.variable(
    "DATABASE_POOL",
    size,
    0,
    "Connections to PostgreSQL that the threads of one process share."
    " 0: each thread opens its own.",
    "16 in workers, 0 in commands",
)
REDIS_URL = SERVICES.variable(
    "REDIS_URL",
    redis_address,
    "",
    "Redis: `redis://…`, `rediss://…` or `unix://…`. With Sentinels:"
    " `redis+sentinel://user:password@host:26379,host:26379/master/0` or"
    " `rediss+sentinel://…`; the options `sentinel_username` and `sentinel_password` are"
    " those of the Sentinels.",
    "embedded Redis",
)
DEFAULT_NETWORK = SERVICES.variable(
    "DEFAULT_NETWORK",
    slug,
    "",
    "Slug of the network at `/v3` on hosts that belong to no network.",
    "the network that was created first",
)
FOLLOW = SERVICES.variable(
    "FOLLOW",
    boolean,
    True,
    "Whether `manage.py serve` runs `manage.py follow` as well, which imports new blocks"
    " from the networks' upstreams. `manage.py web` never does.",
)
DRAIN_SECONDS = SERVICES.variable(
    "DRAIN_SECONDS",
    size,
    0,
    "Seconds for which a worker accepts requests after SIGTERM, while `/readyz` answers"
    " 503, so that load balancers stop using the worker.",
)
WORKER_TIMEOUT_SECONDS = SERVICES.variable(
    "WORKER_TIMEOUT_SECONDS",
    size,
    5,
    "Seconds without a heartbeat after which a worker process is replaced. 0: never.",
)

SITE = Group("Site and security")

PUBLIC_URL = SITE.variable(
    "PUBLIC_URL",
    base_url,
    "",
    "Address at which browsers reach the service, such as `https://rpc.example.org`."
    " Links in mails begin with it.",
    "`http://127.0.0.1:PORT`",
)
DEMO = SITE.variable(
    "DEMO",
    boolean,
    False,
    "Whether the home page explains how to log in to the demonstration, and shows a trace"
    " of its networks. `manage.py serve` turns it on.",
)
HOME_API_KEY = SITE.variable(
    "HOME_API_KEY",
    text,
    "",
    "An API key that the home page shows to everyone in its examples. Give it low limits"
    " and no tracing.",
    "examples have a placeholder; `manage.py serve` makes a key",
)
HTTPS = SITE.variable(
    "HTTPS",
    boolean,
    False,
    "Whether a proxy with TLS stands in front: secure cookies, HSTS, and redirects from"
    " pages that were requested without TLS.",
)
HSTS_SECONDS = SITE.variable(
    "HSTS_SECONDS",
    size,
    31_536_000,
    "With `HTTPS`: seconds for which browsers use TLS only.",
)
HSTS_SUBDOMAINS = SITE.variable(
    "HSTS_SUBDOMAINS",
    boolean,
    False,
    "With `HTTPS`: whether HSTS includes subdomains and the browsers' preload lists.",
)
ALLOWED_HOSTS = SITE.variable(
    "ALLOWED_HOSTS",
    allowed_hosts,
    ["*"],
    "Host names under which pages are served, separated by commas.",
)
CSRF_TRUSTED_ORIGINS = SITE.variable(
    "CSRF_TRUSTED_ORIGINS",
    origins,
    list[str](),
    "Other origins whose forms are accepted, such as `https://node.example.org`,"
    " separated by commas.",
)
FORWARDED_ALLOW_IPS = SITE.variable(
    "FORWARDED_ALLOW_IPS",
    proxies,
    "127.0.0.1",
    "Addresses of proxies, separated by commas. `X-Forwarded-For` and"
    " `X-Forwarded-Proto` are read from these proxies only.",
)
SECRET_KEY = SITE.variable(
    "SECRET_KEY",
    text,
    "",
    "Django's signing key. All processes of a site need the same one.",
    "generated once, stored in `VAR_DIR`",
)
SECRET_KEY_FALLBACKS = SITE.variable(
    "SECRET_KEY_FALLBACKS",
    words,
    list[str](),
    "Former signing keys, separated by commas. Their signatures remain valid.",
)
STAFF_SECOND_FACTOR = SITE.variable(
    "STAFF_SECOND_FACTOR",
    boolean,
    False,
    "Whether the admin requires a one-time password. It needs `requirements-otp.txt`"
    " and an enrolled device; see [keys.md](keys.md).",
)
DEBUG = SITE.variable(
    "DEBUG",
    boolean,
    False,
    "Whether Django shows debug pages. Never turn it on where others can reach the"
    " service.",
)

ACCOUNTS = Group("Accounts and mail")

KEYS_SIGNUP = ACCOUNTS.variable(
    "KEYS_SIGNUP",
    boolean,
    True,
    "Whether anyone can sign up. Otherwise staff create the accounts.",
)
KEYS_PER_CUSTOMER = ACCOUNTS.variable(
    "KEYS_PER_CUSTOMER",
    size,
    5,
    "Number of API keys that customers can create themselves. Keys issued by staff do not"
    " count. Each key has the whole of its plan. 0: staff create all keys.",
)
MAIL_URL = ACCOUNTS.variable(
    "MAIL_URL",
    mail_address,
    "",
    "Mail server: `smtps://user:password@host`, `smtp+starttls://…` or `smtp://…`,"
    " with percent-encoded parts.",
    "mails are printed to the console",
)
MAIL_FROM = ACCOUNTS.variable(
    "MAIL_FROM", sender, "portcullis@localhost", "Sender of all mails."
)

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
    "Size of a batch's results beyond which its other calls are refused. The default is"
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
    "The same for requests with slow methods such as traces, up to the first byte of"
    " the response.",
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
    "Database connections of each web process for searches for logs, which can take as"
    " long as NODEAPI_QUERY_TIMEOUT. They are opened when they are needed.",
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
    " 503.",
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
    "Mail address, URL or words. Errors name it to customers whose key lacks an"
    " entitlement.",
)

NODEAPI_TESTING_METHODS = REQUESTS.variable(
    "NODEAPI_TESTING_METHODS",
    boolean,
    False,
    "Whether `testing_buildBlockV1` is served, to all keys. Only for tests: it executes"
    " any transactions that a customer sends.",
)

TRACES = Group("Traces")

NODEAPI_RECORD_LIMIT_BYTES = TRACES.variable(
    "NODEAPI_RECORD_LIMIT_BYTES",
    size,
    64 * 2**20,
    "Maximum call data of one transaction that the import stores in its trace record."
    " A transaction with more has no traces. The default is ten times the call data of"
    " an ordinary transaction that uses 30 million gas.",
)
NODEAPI_TRACE_WORKERS = TRACES.variable(
    "NODEAPI_TRACE_WORKERS",
    count,
    2,
    "Processes of each worker that execute traces on demand.",
)
NODEAPI_TRACE_CONCURRENCY = TRACES.variable(
    "NODEAPI_TRACE_CONCURRENCY",
    count,
    2,
    "Traces on demand that one API key can have at a time in each worker. A trace counts"
    " until its answer has been read.",
)
NODEAPI_TRACE_TIMEOUT = TRACES.variable(
    "NODEAPI_TRACE_TIMEOUT",
    duration,
    5.0,
    "Seconds for each transaction, unless the caller passes `timeout`. The default is"
    " geth's.",
)
NODEAPI_TRACE_SECONDS = TRACES.variable(
    "NODEAPI_TRACE_SECONDS",
    duration,
    60.0,
    "Seconds for a whole trace, whatever the caller passes.",
)
NODEAPI_TRACE_MEMORY_BYTES = TRACES.variable(
    "NODEAPI_TRACE_MEMORY_BYTES",
    count,
    2**30,
    "Memory of each trace process, beyond what an idle one uses.",
)
NODEAPI_TRACE_RESULT_BYTES = TRACES.variable(
    "NODEAPI_TRACE_RESULT_BYTES", count, 2**29, "Maximum size of one answer."
)
NODEAPI_TRACE_SPOOL_BYTES = TRACES.variable(
    "NODEAPI_TRACE_SPOOL_BYTES",
    count,
    2**32,
    "Disk space of each worker for answers that have not been read yet.",
)
NODEAPI_TRACE_OWNER_BYTES = TRACES.variable(
    "NODEAPI_TRACE_OWNER_BYTES",
    count,
    None,
    "The share of one customer, over all their keys. With a single customer, set it to"
    " `NODEAPI_TRACE_SPOOL_BYTES`.",
    "a quarter of `NODEAPI_TRACE_SPOOL_BYTES`",
)

CALLS = Group("Executed calls")

NODEAPI_CALL_GAS = CALLS.variable(
    "NODEAPI_CALL_GAS",
    size,
    50_000_000,
    "Most gas that one call can use; a higher limit of the caller is reduced to it. The"
    " default is geth's. 0: no limit.",
)
NODEAPI_CALL_TIMEOUT = CALLS.variable(
    "NODEAPI_CALL_TIMEOUT",
    duration,
    5.0,
    "Seconds for the execution of one call. The default is geth's.",
)
NODEAPI_CALL_CONCURRENCY = CALLS.variable(
    "NODEAPI_CALL_CONCURRENCY",
    count,
    256,
    "Calls of one API key that can wait for their execution at a time in each worker."
    " The keys take turns.",
)

CLIENTS = Group("Memory and connections of clients")

BUFFER_BYTES = CLIENTS.variable(
    "BUFFER_BYTES",
    count,
    256 * 2**20,
    "Bytes of unfinished requests and unread responses that each worker buffers.",
)
BUFFER_BYTES_PER_KEY = CLIENTS.variable(
    "BUFFER_BYTES_PER_KEY",
    count,
    None,
    "The share of one API key.",
    "a quarter of `BUFFER_BYTES`",
)
BUFFER_BYTES_PER_ADDRESS = CLIENTS.variable(
    "BUFFER_BYTES_PER_ADDRESS",
    count,
    None,
    "The share of one client address.",
    "half of `BUFFER_BYTES`",
)
CONNECTIONS_PER_KEY = CLIENTS.variable(
    "CONNECTIONS_PER_KEY",
    count,
    1000,
    "HTTP connections of one API key, in each worker.",
)
CONNECTIONS_PER_ADDRESS = CLIENTS.variable(
    "CONNECTIONS_PER_ADDRESS",
    count,
    1000,
    "HTTP connections of one client address, in each worker.",
)
STALL_SECONDS = CLIENTS.variable(
    "STALL_SECONDS",
    duration,
    300.0,
    "Seconds after which a client that reads nothing of its response is disconnected."
    " It does not apply to clients behind a proxy, which has a limit of its own.",
)

WALLET = Group("Wallet")

WALLETS_REQUEST_SECONDS = WALLET.variable(
    "WALLETS_REQUEST_SECONDS",
    duration,
    300.0,
    "Seconds for which a dapp's request stays open for the user's decision. The default"
    " is the lifetime of a WalletConnect proposal.",
)
WALLETS_MAX_PENDING = WALLET.variable(
    "WALLETS_MAX_PENDING",
    count,
    5,
    "Pending requests of one user, over all dapps.",
)
WALLETS_TOKEN_DAYS = WALLET.variable(
    "WALLETS_TOKEN_DAYS",
    duration,
    90.0,
    "Days after its last use for which a connection token stays valid.",
)
WALLETS_HISTORY_DAYS = WALLET.variable(
    "WALLETS_HISTORY_DAYS",
    duration,
    365.0,
    "Days for which decided requests and the activity log are kept.",
)
WALLETS_ECHO_TO_REQUESTER = WALLET.variable(
    "WALLETS_ECHO_TO_REQUESTER",
    boolean,
    False,
    "Whether the socket whose call changed a session receives `wallet_sessionChanged`"
    " as well, as in MetaMask.",
)

OPERATION = Group("Metrics and logs")

METRICS_PORT = OPERATION.variable(
    "METRICS_PORT",
    port,
    0,
    "TCP port of the first worker's `/metrics`. Each further worker has the next port.",
    "off",
)
METRICS_HOST = OPERATION.variable(
    "METRICS_HOST",
    ipv4,
    "127.0.0.1",
    "Address of the metrics ports. Addresses other than loopback need `METRICS_TOKEN`.",
)
METRICS_TOKEN = OPERATION.variable(
    "METRICS_TOKEN",
    text,
    "",
    "Token that requests for metrics must send as `Authorization: Bearer`.",
)
LOG_LEVEL = OPERATION.variable(
    "LOG_LEVEL",
    Choice("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"),
    "INFO",
    "Lowest level of the lines in the log on standard error.",
)
LOG_FORMAT = OPERATION.variable(
    "LOG_FORMAT",
    Choice("text", "json"),
    "text",
    "`json` writes one JSON document per line.",
)
REQUEST_LOG = OPERATION.variable(
    "REQUEST_LOG",
    Choice("off", "problems", "all"),
    "off",
    "Requests that are logged: none, those with errors and slow ones, or all.",
)
REQUEST_LOG_SLOW_SECONDS = OPERATION.variable(
    "REQUEST_LOG_SLOW_SECONDS",
    size,
    5,
    "Seconds from which a request counts as slow in `REQUEST_LOG`.",
)

GROUPS = (
    SERVICES,
    SITE,
    ACCOUNTS,
    REQUESTS,
    TRACES,
    CALLS,
    CLIENTS,
    WALLET,
    OPERATION,
)


def var_dir() -> Path:
    """Return the folder for all files that the service writes: VAR_DIR."""
    return Path(VAR_DIR.value()).resolve()


def problems() -> list[str]:
    """Return a sentence for each setting that is invalid; each begins with its name."""
    found = []
    for group in GROUPS:
        for variable in group.variables:
            try:
                variable.value()
            except InvalidSetting as error:
                found.append(str(error))
    return found or [*_unusable_folder(), *open_metrics()]


def _unusable_folder() -> list[str]:
    """Create VAR_DIR. Return a sentence if the service can't write there."""
    folder = var_dir()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        return [f"VAR_DIR {folder} can't be created: {error.strerror}"]
    if not os.access(folder, os.W_OK | os.X_OK):
        return [f"VAR_DIR {folder} must be a folder that this user can write to"]
    return []


def open_metrics() -> list[str]:
    """Return a sentence if anyone on the network could read the metrics."""
    address = METRICS_HOST.value()
    if not METRICS_PORT.value() or METRICS_TOKEN.value():
        return []
    if ip_address(address).is_loopback:
        return []
    return [
        f"METRICS_TOKEN must be set, because METRICS_HOST {address} is not loopback"
    ]
