"""The project's settings without its cache: every answer is read from the database."""

from config.settings import *  # noqa: F403

NODEAPI_CACHE_BYTES = 0
