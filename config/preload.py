"""The imports of the fork server (`server.forking`): the code of all serving processes.

Nothing is built here, so that there is neither a connection nor a thread nor an event loop
before a fork.
"""

from __future__ import annotations

from django.conf import settings

from config.start import read_settings

read_settings()  # the imports below need Django's apps

import config.application  # noqa: E402
import config.management.commands.follow  # noqa: E402
import config.urls  # noqa: E402, F401
import nodeapi.management.commands.delete_network  # noqa: E402
import nodeapi.tracing.worker  # noqa: E402, F401


def after_fork() -> None:
    """Read the settings of a forked process, which may have more methods."""
    read_settings()
    if settings.NODEAPI_TESTING_METHODS:
        import nodeapi.methods.testing  # noqa: F401
