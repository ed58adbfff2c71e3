"""Serve: the whole service in one command, on a machine that has nothing but Python."""

from __future__ import annotations

import json
import os
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connection

from config import demo, server, services
from config.management import serving

_SETUP_LOCK = 0x706F7274  # "port": any number that nobody else locks


class Command(BaseCommand):
    help = "Start what is needed, import the sample chain, and serve it."

    # The checks that `migrate` makes are enough; most need the database anyway.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--leave-with-parent",
            action="store_true",
            help="stop when the process that started this one is gone (Linux)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        serving.leave_on_signals()
        if options["leave_with_parent"]:
            serving.leave_with_parent()
        try:
            doors = serving.Doors(serving.LOOPBACK)
            with services.running():
                self._serve(doors)
        except (ValueError, OSError, server.PortInUse, server.WorkerFailed) as error:
            raise CommandError(str(error)) from error
        except services.ServiceError as error:
            raise CommandError(str(error)) from error

    def _serve(self, doors: serving.Doors) -> None:
        path = Path(settings.VAR_DIR) / "run.json"
        gateway = doors.server(_worker_environment())
        with _alone():
            call_command("migrate", verbosity=0, interactive=False)
            demo.import_sample_chain()
            run = demo.prepare(gateway.base_url, path)
        connection.close()
        with gateway:
            self.stdout.write(_welcome(run, path))
            self.stdout.flush()
            gateway.supervise()


@contextmanager
def _alone() -> Iterator[None]:
    """Keep another start on the same database waiting until this one is set up."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [_SETUP_LOCK])
        try:
            yield
        finally:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [_SETUP_LOCK])


def _worker_environment() -> dict[str, str]:
    """Return our environment, with the sample chain at `/v3` unless told otherwise."""
    return {"DEFAULT_NETWORK": demo.NETWORK, **os.environ}


def _curl(url: str, method: str, *params: object) -> str:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return (
        f"curl -s {url} \\\n"
        f"  -H 'Content-Type: application/json' -d '{json.dumps(body)}'"
    )


def _welcome(run: demo.Run, path: Path) -> str:
    """Return the block that can be pasted into a shell."""
    url = f"{run.base_url}/v3/{run.api_key}"
    tracing_url = f"{run.base_url}/v3/{run.debug_api_key}"
    sample = run.sample
    block, index = sample["block_hash"], hex(sample["transaction_index"])
    place = sample["contract_address"], sample["storage_position"]
    calls = [
        _curl(url, "eth_blockNumber"),
        _curl(url, "eth_getStorageAt", *place, "latest"),
        _curl(url, "eth_getBlockByHash", block, False),
        _curl(url, "eth_getTransactionByBlockHashAndIndex", block, index),
        _curl(tracing_url, "debug_traceBlockByHash", block, {"tracer": "callTracer"}),
    ]
    return "\n\n".join(
        [
            f"# Portcullis serves the network {run.network}. Try:",
            *calls,
            f"# Admin: {run.admin_url}\n#   user     {run.admin_user}\n"
            f"#   password {run.admin_password}\n"
            f"# Dashboard: {run.dashboard_url}\n#   user     {run.customer_user}\n"
            f"#   password {run.customer_password}\n"
            f"# To look at: {run.base_url}/explore/{run.network}/block/{block}\n"
            f"# The same as JSON: {path}. Ctrl-C stops everything.\n",
        ]
    )
