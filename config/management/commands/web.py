"""Web: serve what is in the database, and do nothing else; for production."""

from __future__ import annotations

import os
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from config import env, server
from config.management import serving


class Command(BaseCommand):
    help = "Serve on HOST and PORT; migrations and imports are other commands."

    # It starts while the database is away, too.
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        serving.leave_on_signals()
        try:
            doors = serving.Doors(env.text("HOST", serving.LOOPBACK))
            with doors.server(dict(os.environ)) as running:
                self.stdout.write(f"serving at {running.base_url}")
                self.stdout.flush()
                running.supervise()
        except (ValueError, OSError, server.PortInUse, server.WorkerFailed) as error:
            raise CommandError(str(error)) from error
