"""The project's settings for tests, with a separate VAR_DIR for each test run.

This module is imported before any setting is read. It sets VAR_DIR to a new folder, so
that a test run does not use the services of other runs or of `make run`. Processes that
tests start use the project's own settings, with the same environment.
"""

import os
import tempfile

from tests.support import leftovers
from tests.support.waiting import PATIENCE_SECONDS

os.environ["VAR_DIR"] = tempfile.mkdtemp(prefix=leftovers.PREFIX)
CLAIM = leftovers.claim(os.environ["VAR_DIR"])
# The processes of a run share the folder of their parent.
SHARED = os.environ.setdefault("TESTS_SHARED_DIR", os.environ["VAR_DIR"])
os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"

# Time limits are long, because the machine may be busy. Tests of time limits
# configure their own service.
os.environ["NODEAPI_QUERY_TIMEOUT"] = str(PATIENCE_SECONDS)
os.environ["NODEAPI_REQUEST_TIMEOUT"] = str(2 * PATIENCE_SECONDS)
os.environ["NODEAPI_TRACE_TIMEOUT"] = str(PATIENCE_SECONDS)
os.environ["NODEAPI_TRACE_SECONDS"] = str(2 * PATIENCE_SECONDS)

from config.embedded import postgres  # noqa: E402
from config.settings import *  # noqa: E402, F403
from config.settings import DATABASES, INSTALLED_APPS  # noqa: E402

# The data of a test run need not survive a crash of the machine. A crash of PostgreSQL
# alone loses nothing, because the operating system has its writes in memory.
for name in ("fsync", "full_page_writes"):
    postgres.SETTINGS[name] = "off"

INSTALLED_APPS = [*INSTALLED_APPS, "tests.emptying"]  # for its `flush`

# With a DATABASE_URL two runs may share one server.
DATABASES["default"]["TEST"] = {"NAME": f"test_portcullis_{os.getpid()}"}
if not os.environ.get("DATABASE_URL"):
    # A copy of the tables, which are migrated once for all processes.
    DATABASES["default"]["TEST"]["TEMPLATE"] = postgres.NAME

# Each test client has its own middleware, which would otherwise list all
# static files. With this setting, it only looks up the requested file.
WHITENOISE_AUTOREFRESH = True

# Password hashers are slow by design, which no test needs.
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
WALLETS_SCRYPT_COST = 2
