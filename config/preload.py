"""The imports of the fork server (`server.forking`): the code of all serving processes.

What their pages need is built here, too: the routes, the templates and the list of static
files. Nothing else is, so that there is neither a connection nor a thread nor an event loop
before a fork.
"""

from __future__ import annotations

from importlib import import_module

from django.conf import settings

from config.start import read_settings

MODULES = (
    "config.application",
    "config.management.commands.follow",
    "nodeapi.management.commands.delete_network",
    "nodeapi.tracing.worker",
    # Django, Channels and uvicorn import these when they are used first.
    *("psycopg_pool", "channels_redis.pubsub"),
    *("uvicorn.lifespan.on", "uvicorn.loops.uvloop"),
)


def after_fork() -> None:
    """Read the settings of a forked process, which may have more methods."""
    read_settings()
    if settings.NODEAPI_TESTING_METHODS:
        import nodeapi.methods.testing  # noqa: F401


read_settings()  # the imports need Django's apps
for name in (*MODULES, settings.ROOT_URLCONF):
    import_module(name)
import_module("config.prepared_pages").prepare()
