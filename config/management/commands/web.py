"""Web: serve the networks in the database, in production. It performs no set-up."""

from __future__ import annotations

import os
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from config.management import serving
from config.variables import processes
from server import supervisor


class Command(BaseCommand):
    help = (
        "Serve the networks in the database on HOST and PORT. Migrations and "
        "imports are separate commands."
    )

    # It starts even if the database is unavailable.
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        serving.leave_on_signals()
        try:
            sockets = serving.ListeningSockets(processes.HOST.value())
            with sockets.server(dict(os.environ)) as running:
                self.stdout.write(f"serving at {running.base_url}")
                self.stdout.flush()
                running.supervise()
        except (
            ValueError,
            OSError,
            supervisor.PortInUse,
            supervisor.WorkerFailed,
        ) as error:
            raise CommandError(str(error)) from error
