"""The application that the server loads: `config.asgi:application`."""

from __future__ import annotations

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
pages = get_asgi_application()  # sets Django up: the imports below need that

from config.gateway import Gateway  # noqa: E402
from nodeapi.service import build_endpoint  # noqa: E402

application = Gateway(build_endpoint(), pages)
