"""The project's settings, in a folder of the test run's own.

Being the settings module is what makes this come first: before any setting is read
VAR_DIR points to a new folder, so that a run meets no other run's services, nor
those of a `make run` in the same clone. Processes that tests start get the project's
own settings, with the same environment.
"""

import os
import tempfile

from tests.support import leftovers
from tests.support.waiting import PATIENCE_SECONDS

os.environ["VAR_DIR"] = tempfile.mkdtemp(prefix=leftovers.PREFIX)
CLAIM = leftovers.claim(os.environ["VAR_DIR"])
# The processes of a run share the folder of the one that has started them.
SHARED = os.environ.setdefault("TESTS_SHARED_DIR", os.environ["VAR_DIR"])
os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"

# No answer is given up because the machine has other things to do: tests that are about
# these say so to a service of their own.
os.environ["NODEAPI_QUERY_TIMEOUT"] = str(PATIENCE_SECONDS)
os.environ["NODEAPI_REQUEST_TIMEOUT"] = str(2 * PATIENCE_SECONDS)
os.environ["NODEAPI_TRACE_TIMEOUT"] = str(PATIENCE_SECONDS)
os.environ["NODEAPI_TRACE_SECONDS"] = str(2 * PATIENCE_SECONDS)

from config.embedded import postgres  # noqa: E402
from config.settings import *  # noqa: E402, F403
from config.settings import DATABASES, INSTALLED_APPS  # noqa: E402

# Nobody needs the data of a test run after the machine has crashed. A crash of PostgreSQL
# alone loses nothing: what it has written is in the memory of the operating system.
for name in ("fsync", "full_page_writes"):
    postgres.SETTINGS[name] = "off"

INSTALLED_APPS = [*INSTALLED_APPS, "tests.emptying"]  # for its `flush`

# With a DATABASE_URL two runs may share one server.
DATABASES["default"]["TEST"] = {"NAME": f"test_portcullis_{os.getpid()}"}

# Each of the tests' browsers has a middleware of its own, which would first look for all
# static files; this way it looks for the one that is asked for.
WHITENOISE_AUTOREFRESH = True

# Hashing is slow by design, and no test is about its strength.
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
WALLETS_SCRYPT_COST = 2
