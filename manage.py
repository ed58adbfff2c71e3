#!/usr/bin/env python
"""Run a management command. The embedded services keep running until it ends."""

import os
import signal
import sys
from collections.abc import Sequence

from config import env, services
from config.variables.groups import problems

WITHOUT_SERVICES = frozenset(
    {
        *("help", "version", "--help", "-h", "--version", "check", "diffsettings"),
        *("collectstatic", "findstatic", "makemigrations", "makemessages"),
        *("compilemessages", "startapp", "startproject"),
        "serve",  # holds them itself, after it has made sure of its port
    }
)
"""Commands that answer without a database, and must where there can be none."""


def main(*arguments: str) -> None:
    """Run a management command. arguments: its name and those of the command."""
    from django.db import OperationalError

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    if found := problems():
        sys.exit("\n".join(f"manage.py: {problem}" for problem in found))
    try:
        _run(arguments)
    except (services.ServiceError, env.InvalidSetting) as error:
        sys.exit(f"manage.py: {error}")
    except OperationalError as error:
        if "--traceback" in arguments:
            raise
        first_line, _, _ = str(error).partition("\n")
        sys.exit(f"manage.py: the database failed: {first_line}")


def _run(arguments: Sequence[str]) -> None:
    from config.management.help import Manage

    command = Manage(["manage.py", *arguments])
    name = arguments[0] if arguments else "help"
    if name in WITHOUT_SERVICES or {"-h", "--help"} & set(arguments[1:]):
        command.execute()
        return
    # Unwound like Ctrl-C, so that the last user of the services stops them.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with services.running():
        command.execute()


if __name__ == "__main__":
    main(*sys.argv[1:])
