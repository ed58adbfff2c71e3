"""Serve: run the whole service in one command, on a machine with nothing but Python."""

from __future__ import annotations

import json
import os
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.checks import Tags
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import DEFAULT_DB_ALIAS, connection
from django.db.migrations.executor import MigrationExecutor

from config import demo, services
from config.management import followers, serving
from config.run_file import main_path, run_file
from config.variables import processes
from networks.masking import mask_url
from nodeapi.chain.networks import NetworkMismatch
from server import forking, supervisor
from server.children import Children, kept_running
from server.forking import Forked

_SETUP_LOCK = 0x706F7274  # "port": a number for which there is no other advisory lock


class Command(BaseCommand):
    help = (
        "Run everything on one machine: PostgreSQL, Redis, the sample chain, the "
        "service and the followers."
    )

    # Checks of the database run when it has been started.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--leave-with-parent",
            action="store_true",
            help="stop when the parent process ends (Linux)",
        )
        parser.add_argument(
            "--upstream",
            action="append",
            default=[],
            metavar="URL",
            help=f"URL of a node whose chain is followed as network {demo.LIVE_NETWORK!r};"
            " can be repeated",
        )
        parser.add_argument(
            "--genesis",
            type=Path,
            metavar="FILE",
            help="geth's genesis.json of that network; required for its first start",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        serving.leave_on_signals()
        if options["leave_with_parent"]:
            serving.leave_with_parent()
        try:
            sockets = serving.ListeningSockets(serving.LOOPBACK)
            forking.shared.open()  # it imports while the services start
            with services.running(restart=True):
                self._serve(sockets, options["upstream"], options["genesis"])
        except (
            ValueError,
            OSError,
            supervisor.PortInUse,
            supervisor.WorkerFailed,
        ) as error:
            raise CommandError(str(error)) from error
        except (services.ServiceError, NetworkMismatch) as error:
            raise CommandError(str(error)) from error

    def _serve(
        self,
        sockets: serving.ListeningSockets,
        upstreams: Sequence[str],
        genesis: Path | None,
    ) -> None:
        with run_file(settings.VAR_DIR, sockets.port) as path:
            self._run(sockets, path, upstreams, genesis)

    def _run(
        self,
        sockets: serving.ListeningSockets,
        path: Path,
        upstreams: Sequence[str],
        genesis: Path | None,
    ) -> None:
        with _alone():
            self.check(tags=[Tags.database], databases=[DEFAULT_DB_ALIAS])
            if path != main_path(settings.VAR_DIR):
                _refuse_older_server()
            call_command("migrate", verbosity=0, interactive=False)
            demo.import_sample_chain()
            if upstreams:
                demo.follow_upstreams(upstreams, genesis)
            run = demo.prepare(sockets.base_url, path, main_path(settings.VAR_DIR))
        connection.close()
        gateway = sockets.server(_worker_environment(run.api_key))
        with gateway, _followers():
            self.stdout.write(_welcome(run, path, upstreams))
            self.stdout.flush()
            gateway.supervise()


@contextmanager
def _alone() -> Iterator[None]:
    """Hold a lock, so that other starts on the same database wait for the set-up."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [_SETUP_LOCK])
        try:
            yield
        finally:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [_SETUP_LOCK])


def _refuse_older_server() -> None:
    """Check that the server that runs on the same VAR_DIR has the same tables.

    Its code does not know the migrations of a newer version. An empty database is one
    that both servers have just begun to prepare.

    Raises: CommandError.
    """
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if plan and executor.loader.applied_migrations:
        raise CommandError(
            f"an older version is running on {settings.VAR_DIR}: stop it first, because "
            f"this version changes its database ({len(plan)} migrations)"
        )


@contextmanager
def _followers() -> Iterator[None]:
    """Run `manage.py follow` during a `with` block, unless FOLLOW is off."""
    if not processes.FOLLOW.value():
        yield
        return

    def start(name: str) -> Forked:
        return followers.start_command("followers", name, "--lifeline")

    children = Children("command", start, stop_seconds=followers.STOP_SECONDS)
    with kept_running(children, ["follow"]):
        yield


def _worker_environment(api_key: str) -> dict[str, str]:
    """Return this process's environment, with the demonstration's settings as defaults.

    The sample chain is the network at `/v3`, and the home page shows a key for it.
    """
    shown = {"DEMO": "on", "HOME_API_KEY": api_key}
    return {"DEFAULT_NETWORK": demo.NETWORK, **shown, **os.environ}


def _curl(url: str, method: str, *params: object) -> str:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return (
        f"curl -s {url} \\\n"
        f"  -H 'Content-Type: application/json' -d '{json.dumps(body)}'"
    )


def _welcome(run: demo.Run, path: Path, upstreams: Sequence[str]) -> str:
    """Return the text with example calls, which can be pasted into a shell."""
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
    live = f"{run.base_url}/{demo.LIVE_NETWORK}/v3/{run.api_key}"
    followed = [
        f"# Network {demo.LIVE_NETWORK} follows {', '.join(map(mask_url, upstreams))}:",
        _curl(live, "eth_blockNumber"),
    ]
    return "\n\n".join(
        [
            f"# Portcullis serves the network {run.network}. Try:",
            *calls,
            *(followed if upstreams else []),
            f"# In a browser, begin at {run.base_url}/\n"
            "#\n"
            f"# Log in as customer, to create keys and to see their usage:\n"
            f"#   {run.dashboard_url}\n"
            f"#   user     {run.customer_user}\n"
            f"#   password {run.customer_password}\n"
            "#\n"
            "# Log in as staff, to administer networks, customers and plans:\n"
            f"#   {run.admin_url}\n"
            f"#   user     {run.admin_user}\n"
            f"#   password {run.admin_password}\n"
            "#\n"
            "# A browser has one login at a time: log out before you change the user.",
            f"# A block as a page, for both users: "
            f"{run.base_url}/explore/{run.network}/block/{block}\n"
            f"# All of this as JSON: {path}\n"
            "# Ctrl-C stops everything.\n",
        ]
    )
