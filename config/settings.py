"""Settings of the whole project.

Every value that differs between machines comes from the environment through
`config.env`; each app's own settings stand in its `conf.py`, with the default
beside the name. Reference: https://docs.djangoproject.com/en/5.2/ref/settings/
"""

import os

from config import env
from config.mail import mail_settings
from config.second_factor import require_second_factor
from config.secret import secret_key
from config.services import database_url, parse_database_url, redis_url

BASE_DIR = env.BASE_DIR
VAR_DIR = env.var_dir()

# The C implementation; the choice must be made before eth-hash is imported.
os.environ.setdefault("ETH_HASH_BACKEND", "pysha3")

DEBUG = env.boolean("DEBUG", False)
SECRET_KEY = env.text("SECRET_KEY") or secret_key(VAR_DIR)
# The API is reached under whatever name a network is given, so the names are the
# networks' own business; a proxy in front of a production site checks them.
ALLOWED_HOSTS = env.words("ALLOWED_HOSTS", "*")
SECRET_KEY_FALLBACKS = env.words("SECRET_KEY_FALLBACKS")

# Behind TLS nothing is sent without it, and browsers are told to remember that.
HTTPS = env.boolean("HTTPS", False)
SECURE_SSL_REDIRECT = SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SECURE_HSTS_SECONDS = env.integer("HSTS_SECONDS", 31_536_000) if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = env.boolean("HSTS_SUBDOMAINS", False)
SECURE_HSTS_PRELOAD = SECURE_HSTS_INCLUDE_SUBDOMAINS
CSRF_TRUSTED_ORIGINS = env.words("CSRF_TRUSTED_ORIGINS")
# What the provider's other subdomains do is for the provider to say.
SILENCED_SYSTEM_CHECKS = (
    [] if SECURE_HSTS_INCLUDE_SUBDOMAINS else ["security.W005", "security.W021"]
)

METRICS_TOKEN = env.text("METRICS_TOKEN")

# Where browsers reach the service, for links in mails; empty: this machine's port.
PUBLIC_URL = env.text("PUBLIC_URL")
PORT = env.integer("PORT", 8000)
KEYS_SIGNUP = env.boolean("KEYS_SIGNUP", True)

# Slug of the network at /v3 on a host that is no network's own; empty: the first.
DEFAULT_NETWORK = env.text("DEFAULT_NETWORK")

# What the apps' conf.py reads, each with its own default.
globals().update(
    env.given(
        KEYS_PER_CUSTOMER=env.size,
        NODEAPI_CACHE_BYTES=env.size,
        NODEAPI_DATABASE_CONNECTIONS=env.count,
        NODEAPI_QUERY_TIMEOUT=env.duration,
        NODEAPI_FAILED_KEYS_PER_MINUTE=env.size,
        NODEAPI_MAX_BODY_BYTES=env.count,
        NODEAPI_MAX_BATCH_CALLS=env.count,
        NODEAPI_MAX_BATCH_RESPONSE_BYTES=env.count,
        NODEAPI_RECORD_LIMIT_BYTES=env.size,
        NODEAPI_REQUEST_TIMEOUT=env.duration,
        NODEAPI_SLOW_REQUEST_TIMEOUT=env.duration,
        NODEAPI_TRACE_CONCURRENCY=env.count,
        NODEAPI_TRACE_MEMORY_BYTES=env.count,
        NODEAPI_TRACE_RESULT_BYTES=env.count,
        NODEAPI_TRACE_SECONDS=env.duration,
        NODEAPI_TRACE_SPOOL_BYTES=env.count,
        NODEAPI_TRACE_TIMEOUT=env.duration,
        NODEAPI_TRACE_WORKERS=env.count,
        NODEAPI_SUPPORT_CONTACT=str,
        WALLETS_REQUEST_SECONDS=env.duration,
        WALLETS_MAX_PENDING=env.count,
        WALLETS_TOKEN_DAYS=env.duration,
        WALLETS_HISTORY_DAYS=env.duration,
    )
)

WALLETS_ECHO_TO_REQUESTER = env.boolean("WALLETS_ECHO_TO_REQUESTER", False)

# The one file that people send is a keystore, which has 16 KiB at most; nothing that
# anybody sends is written to a disk.
FILE_UPLOAD_HANDLERS = ["django.core.files.uploadhandler.MemoryFileUploadHandler"]
FILE_UPLOAD_MAX_MEMORY_SIZE = 65_536

INSTALLED_APPS = [
    "config.admin_apps.OurAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "channels",
    "rest_framework",
    "config",
    "networks",
    "keys",
    "nodeapi",
    "wallets",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "config.static_files.StaticFiles",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

# Off by default: nobody gets into the admin before he has enrolled.
STAFF_SECOND_FACTOR = env.boolean("STAFF_SECOND_FACTOR", False)
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

# PostgreSQL is the only dialect. Without DATABASE_URL it is the embedded one, whose
# address follows from VAR_DIR alone, whether it runs already or not.
DATABASES = {"default": parse_database_url(database_url())}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

REDIS_URL = redis_url()
CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {"hosts": [REDIS_URL]},
    },
}

AUTH_USER_MODEL = "keys.User"
LOGIN_URL = LOGOUT_REDIRECT_URL = "login"
LOGIN_REDIRECT_URL = "dashboard:keys"
PASSWORD_RESET_TIMEOUT = 86_400  # seconds, as for the links of sign-up mails
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

# All else about the management API stands with its views, keys/api/views.py.
REST_FRAMEWORK = {"DEFAULT_SCHEMA_CLASS": "keys.api.schema.DescribedSchema"}

LANGUAGE_CODE = "en-us"
FORMAT_MODULE_PATH = "config.formats"
TIME_ZONE = "UTC"
USE_TZ = True

STATIC_URL = "static/"
STATIC_ROOT = VAR_DIR / "static"
STATIC_ROOT.mkdir(parents=True, exist_ok=True)  # whitenoise warns when it is missing
STATICFILES_DIRS = [BASE_DIR / "static"]
# Without a collectstatic run the files are served from where they lie.
WHITENOISE_USE_FINDERS = True

globals().update(mail_settings(env.text("MAIL_URL")))
DEFAULT_FROM_EMAIL = SERVER_EMAIL = env.text("MAIL_FROM", "portcullis@localhost")
EMAIL_TIMEOUT = 10  # seconds; without it a silent mail server would hold a page up
X_FRAME_OPTIONS = "DENY"
# Nothing goes to other sites: a URL may hold an API key. "no-referrer" would take the
# Origin from our own forms as well, and CSRF protection would refuse them all.
SECURE_REFERRER_POLICY = "same-origin"

LOG_FORMAT = env.one_of("LOG_FORMAT", "text", "json")
REQUEST_LOG = env.one_of("REQUEST_LOG", "off", "problems", "all")
REQUEST_LOG_SLOW_SECONDS = env.integer("REQUEST_LOG_SLOW_SECONDS", 5)

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
    "handlers": {
        "console": {
            "class": "logging.StreamHandler",
            "formatter": LOG_FORMAT,
        }
    },
    "root": {"handlers": ["console"], "level": env.text("LOG_LEVEL", "INFO")},
    "loggers": {
        # py-evm formats a line for each step of a transaction at level 8.
        "eth": {"level": "WARNING"},
        # Some lines for each connection that is taken and given back.
        "psycopg.pool": {"level": "WARNING"},
        # Both write addresses with what is secret in them.
        "httpx": {"level": "WARNING"},
        "httpcore": {"level": "WARNING"},
    },
}
