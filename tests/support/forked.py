"""Functions that forked processes call in tests."""

from __future__ import annotations

import atexit
import json
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

from server import forking
from server.lifeline import end_with_parent


def write(descriptor: int, value: object) -> None:
    with os.fdopen(descriptor, "w") as file:
        json.dump(value, file)


def opened() -> list[str]:
    """Return the open file descriptors of this process."""
    found = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # the listing itself
            found.append(os.readlink(descriptor).partition(":")[0])
    return sorted(found)


def describe(variable: str, descriptor: int) -> None:
    """Write the initial properties of a forked process."""
    write(
        descriptor,
        {
            "environ": {variable: os.environ.get(variable)},
            "opened": opened(),
            "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
            "group": os.getpgid(0) == os.getpid(),
            "title": Path("/proc/self/comm").read_text().strip(),
        },
    )


def end(status: int) -> None:
    sys.exit(status)


def fail() -> None:
    raise RuntimeError("no luck today")


def end_late(message: str) -> None:
    """End with a message while a thread and an exit handler have yet to print."""
    atexit.register(print, "exit handler", message)
    threading.Timer(0.1, print, ("thread", message)).start()
    if message != "no message":
        sys.exit(message)


def sleep() -> None:
    time.sleep(3600)


def until_alone() -> None:
    """Return at the end of standard input."""
    sys.stdin.read()


def use_services(restart: str, pipe: int) -> None:
    """Use the embedded services until the end of a pipe.

    restart: restart those that die, unless empty.
    """
    from config import services

    with services.running(restart=bool(restart)):
        print("up", flush=True)
        os.read(pipe, 1)


def keep_followers(folder: str, *slugs: str) -> None:
    """Run `keep_followers` with a process that writes its id to `folder/SLUG`."""
    from config.management import followers, serving

    def start(slug: str) -> forking.Forked:
        return forking.shared.start("tests.support.forked:write_id", folder, slug)

    serving.leave_on_signals()
    followers.keep_followers(slugs, start)


def write_id(folder: str, slug: str) -> None:
    """Write the id of this process to `folder/SLUG`, and sleep."""
    end_with_parent()
    with open(f"{folder}/{slug}", "a") as file:
        file.write(f"{os.getpid()}\n")
    sleep()


def fork(descriptor: int) -> None:
    """Write the id and the exit status of a process that this one has forked."""
    forked = forking.shared.start("tests.support.forked:end", 7)
    write(descriptor, [os.getppid(), forked.pid, forked.wait()])


def read_settings(name: str, descriptor: int) -> None:
    """Write settings of Django that depend on the environment."""
    import logging

    from django.conf import settings
    from django.db import connection

    level = logging.getLogger().level
    write(
        descriptor, [getattr(settings, name), connection.settings_dict["NAME"], level]
    )


def build_application(descriptor: int) -> None:
    """Write the names of the modules that are imported for the application."""
    present = set(sys.modules)
    import config.asgi

    write(descriptor, sorted(set(sys.modules) - present))
    assert config.asgi.application


def manage_in_terminal(*arguments: str) -> None:
    """Run a management command that Ctrl-C ends, also in a background job of a shell."""
    import manage

    signal.signal(signal.SIGINT, signal.default_int_handler)
    manage.main(*arguments)


def follow(slug: str, head: str) -> None:
    """Make a stored block the head of a network. head: its hash, in hexadecimal."""
    from nodeapi.chain.forkchoice import Forkchoice
    from tests.support import chains

    with chains.following_importer(slug, None) as importer:
        importer.follow(Forkchoice(bytes.fromhex(head), None, None))


def run_follower(network: int) -> None:
    """Run the follower of a network until SIGTERM."""
    from nodeapi.follower.run import run_follower

    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    run_follower(network, stop)
