"""Settings of the whole project.

Every value that differs between machines is an environment variable that
`config/variables/` declares, with its default and its meaning.
Reference: https://docs.djangoproject.com/en/5.2/ref/settings/
"""

import os

from config import env
from config.database_url import parse_database_url
from config.limits import read_limits
from config.mail import mail_settings
from config.second_factor import require_second_factor
from config.secret import secret_key
from config.services import database_url, redis_url, with_pool
from config.variables import (
    accounts,
    execution,
    operation,
    processes,
    requests,
    site,
    wallet,
)
from outbox.redis_address import channel_layer_host

BASE_DIR = env.BASE_DIR
VAR_DIR = processes.var_dir()

# The C implementation of Keccak. It must be selected before eth-hash is imported.
os.environ.setdefault("ETH_HASH_BACKEND", "pysha3")

DEBUG = site.DEBUG.value()
SECRET_KEY = site.SECRET_KEY.value() or secret_key(VAR_DIR)
# Staff can give networks any host name, so no list is checked by default. The proxy of a
# production site checks the names.
ALLOWED_HOSTS = site.ALLOWED_HOSTS.value()
SECRET_KEY_FALLBACKS = site.SECRET_KEY_FALLBACKS.value()

# Behind TLS, cookies are sent with TLS only, and HSTS makes browsers use it always.
HTTPS = site.HTTPS.value()
SECURE_SSL_REDIRECT = SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SECURE_HSTS_SECONDS = site.HSTS_SECONDS.value() if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = site.HSTS_SUBDOMAINS.value()
SECURE_HSTS_PRELOAD = SECURE_HSTS_INCLUDE_SUBDOMAINS
CSRF_TRUSTED_ORIGINS = site.CSRF_TRUSTED_ORIGINS.value()
# These two checks ask for HSTS on subdomains, which only the provider can decide.
SILENCED_SYSTEM_CHECKS = (
    [] if SECURE_HSTS_INCLUDE_SUBDOMAINS else ["security.W005", "security.W021"]
)

# The workers read the limits again; here an invalid value is reported before they start.
CLIENT_LIMITS = read_limits()

METRICS_TOKEN = operation.METRICS_TOKEN.value()

# The service's URL in emails. Empty: http://127.0.0.1:PORT.
PUBLIC_URL = site.PUBLIC_URL.value()
PORT = processes.PORT.value()
KEYS_SIGNUP = accounts.KEYS_SIGNUP.value()
DEMO = site.DEMO.value()
HOME_API_KEY = site.HOME_API_KEY.value()

# Slug of the network at /v3 on hosts that belong to no network. Empty: the first one.
DEFAULT_NETWORK = processes.DEFAULT_NETWORK.value()

KEYS_PER_CUSTOMER = accounts.KEYS_PER_CUSTOMER.value()
NODEAPI_CACHE_BYTES = requests.NODEAPI_CACHE_BYTES.value()
NODEAPI_DATABASE_CONNECTIONS = requests.NODEAPI_DATABASE_CONNECTIONS.value()
NODEAPI_LOG_CONNECTIONS = requests.NODEAPI_LOG_CONNECTIONS.value()
NODEAPI_MAX_LOGS = requests.NODEAPI_MAX_LOGS.value()
NODEAPI_QUERY_TIMEOUT = requests.NODEAPI_QUERY_TIMEOUT.value()
NODEAPI_FAILED_KEYS_PER_MINUTE = requests.NODEAPI_FAILED_KEYS_PER_MINUTE.value()
NODEAPI_MAX_BODY_BYTES = requests.NODEAPI_MAX_BODY_BYTES.value()
NODEAPI_MAX_BATCH_CALLS = requests.NODEAPI_MAX_BATCH_CALLS.value()
NODEAPI_MAX_BATCH_RESPONSE_BYTES = requests.NODEAPI_MAX_BATCH_RESPONSE_BYTES.value()
NODEAPI_BATCHES_IN_PROGRESS_BYTES = requests.NODEAPI_BATCHES_IN_PROGRESS_BYTES.value()
NODEAPI_RECORD_LIMIT_BYTES = execution.NODEAPI_RECORD_LIMIT_BYTES.value()
NODEAPI_REQUEST_TIMEOUT = requests.NODEAPI_REQUEST_TIMEOUT.value()
NODEAPI_SLOW_REQUEST_TIMEOUT = requests.NODEAPI_SLOW_REQUEST_TIMEOUT.value()
NODEAPI_CALL_CONCURRENCY = execution.NODEAPI_CALL_CONCURRENCY.value()
NODEAPI_CALL_GAS = execution.NODEAPI_CALL_GAS.value()
NODEAPI_CALL_TIMEOUT = execution.NODEAPI_CALL_TIMEOUT.value()
NODEAPI_TRACE_CONCURRENCY = execution.NODEAPI_TRACE_CONCURRENCY.value()
NODEAPI_TRACE_MEMORY_BYTES = execution.NODEAPI_TRACE_MEMORY_BYTES.value()
NODEAPI_TRACE_RESULT_BYTES = execution.NODEAPI_TRACE_RESULT_BYTES.value()
NODEAPI_TRACE_SECONDS = execution.NODEAPI_TRACE_SECONDS.value()
NODEAPI_TRACE_SPOOL_BYTES = execution.NODEAPI_TRACE_SPOOL_BYTES.value()
NODEAPI_TRACE_OWNER_BYTES = execution.NODEAPI_TRACE_OWNER_BYTES.value()
NODEAPI_TRACE_TIMEOUT = execution.NODEAPI_TRACE_TIMEOUT.value()
NODEAPI_TRACE_WORKERS = execution.NODEAPI_TRACE_WORKERS.value()
NODEAPI_TESTING_METHODS = requests.NODEAPI_TESTING_METHODS.value()
NODEAPI_SUPPORT_CONTACT = requests.NODEAPI_SUPPORT_CONTACT.value()
WALLETS_REQUEST_SECONDS = wallet.WALLETS_REQUEST_SECONDS.value()
WALLETS_MAX_PENDING = wallet.WALLETS_MAX_PENDING.value()
WALLETS_TOKEN_DAYS = wallet.WALLETS_TOKEN_DAYS.value()
WALLETS_HISTORY_DAYS = wallet.WALLETS_HISTORY_DAYS.value()
WALLETS_ECHO_TO_REQUESTER = wallet.WALLETS_ECHO_TO_REQUESTER.value()
# The cost N of scrypt for new keystores, a power of two. OWASP's minimum for passwords; it
# takes 128 MiB and about half a second. Only tests use another value.
WALLETS_SCRYPT_COST = 2**17

# The only uploaded files are keystores of at most 16 KiB and contract ABIs of at most
# 512 KiB. Uploads are kept in memory, so that no key material is written to disk.
FILE_UPLOAD_HANDLERS = ["django.core.files.uploadhandler.MemoryFileUploadHandler"]
FILE_UPLOAD_MAX_MEMORY_SIZE = 1_048_576

INSTALLED_APPS = [
    "config.admin_apps.OurAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "django.contrib.postgres",
    "channels",
    "rest_framework",
    "config",
    "outbox",
    "networks",
    "keys",
    "nodeapi",
    "explorer",
    "wallets",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "config.error_pages.RejectNul",
    "config.static_files.StaticFiles",
    "config.admin_policy.AdminPolicy",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "wallets.middleware.WindowPolicy",
]

# Off by default, because staff can't open the admin before they have enrolled a device.
STAFF_SECOND_FACTOR = site.STAFF_SECOND_FACTOR.value()
OTP_TOTP_ISSUER = "Portcullis"
if STAFF_SECOND_FACTOR:
    require_second_factor(INSTALLED_APPS, MIDDLEWARE)

ROOT_URLCONF = "config.urls"
ASGI_APPLICATION = "config.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

# PostgreSQL is the only supported database. Without DATABASE_URL it is the embedded one,
# whose address depends on VAR_DIR only, so that it is known before the server runs.
DATABASES = {
    "default": with_pool(
        parse_database_url(database_url()), processes.DATABASE_POOL.value()
    )
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

REDIS_URL = redis_url()
CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {"hosts": [channel_layer_host(REDIS_URL)]},
    },
}

AUTH_USER_MODEL = "keys.User"
LOGIN_URL = LOGOUT_REDIRECT_URL = "login"
LOGIN_REDIRECT_URL = "dashboard:keys"
PASSWORD_RESET_TIMEOUT = 86_400  # seconds, as for the links in sign-up emails
AUTHENTICATION_BACKENDS = ["keys.login.LockingBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]

CSRF_FAILURE_VIEW = "config.error_pages.csrf_failure"

# The other options of the management API are set by its views in keys/api/views.py.
REST_FRAMEWORK = {"DEFAULT_SCHEMA_CLASS": "keys.api.schema.DescribedSchema"}

LANGUAGE_CODE = "en-us"
FORMAT_MODULE_PATH = "config.formats"
TIME_ZONE = "UTC"
USE_TZ = True

STATIC_URL = "static/"
STATIC_ROOT = VAR_DIR / "static"
STATIC_ROOT.mkdir(parents=True, exist_ok=True)  # whitenoise warns if missing
STATICFILES_DIRS = [BASE_DIR / "static"]
# Without collectstatic, files are served from their source folders.
WHITENOISE_USE_FINDERS = True

globals().update(mail_settings(accounts.MAIL_URL.value()))
DEFAULT_FROM_EMAIL = SERVER_EMAIL = accounts.MAIL_FROM.value()
EMAIL_TIMEOUT = (
    10  # seconds, so that a mail server that does not answer blocks no page for longer
)
X_FRAME_OPTIONS = "DENY"
# URLs can contain an API key, so other sites get no Referer. "no-referrer" would also
# remove the Origin from our own forms, and CSRF protection would refuse them.
SECURE_REFERRER_POLICY = "same-origin"

LOG_FORMAT = operation.LOG_FORMAT.value()
REQUEST_LOG = operation.REQUEST_LOG.value()
REQUEST_LOG_SLOW_SECONDS = operation.REQUEST_LOG_SLOW_SECONDS.value()

# The processes of this VAR_DIR share one line a minute about an outage of the database.
OUTAGE_FILE = VAR_DIR / "database-outage"

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "text": {
            "()": "config.logs.RedactingFormatter",
            "format": "%(asctime)s %(levelname)s %(name)s: %(message)s",
        },
        "json": {"()": "config.logs.JsonFormatter"},
    },
    "filters": {
        "repeats": {"()": "config.log_limits.RepeatLimit"},
        "outages": {"()": "postgres.outages.OutageLimit", "path": OUTAGE_FILE},
    },
    "handlers": {
        "console": {
            "class": "logging.StreamHandler",
            "formatter": LOG_FORMAT,
            "filters": ["repeats", "outages"],
        }
    },
    "root": {"handlers": ["console"], "level": operation.LOG_LEVEL.value()},
    "loggers": {
        # Its warnings are attempts to connect; the requests that fail are logged.
        "psycopg.pool": {"level": "ERROR"},
        # Writes a traceback each second while Redis is down, which `outbox.receiver`
        # reports once.
        "channels_redis": {"level": "CRITICAL"},
    },
}
