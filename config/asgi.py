"""The ASGI application that the server loads: `config.asgi:application`."""

from __future__ import annotations

import os

from config.start import read_settings

# Pages need 8 (`config.pages`), the wallet's calls 4, uses of revoked keys 4, and emails
# about keys one for a moment every minute.
os.environ.setdefault("DATABASE_POOL", "16")
read_settings()  # the imports below need Django's apps

from config.application import build  # noqa: E402

application = build()
