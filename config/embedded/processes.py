"""Starting programs as a given user, and finding running processes."""

from __future__ import annotations

import contextlib
import os
import pwd
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from config.embedded import launcher, places

_LOG_LIMIT_BYTES = 16 * 1024 * 1024
"""Size of a log beyond which it is rotated when its service starts."""

_END_SECONDS = 10
"""Seconds to wait for the process of a service that was stopped."""

_started: list[tuple[Path, subprocess.Popen[bytes]]] = []
# Started services with their folders. They are kept, because a service can outlive this
# process, and Python warns about an unreferenced Popen.


def run(
    command: Sequence[str], user: pwd.struct_passwd | None, folder: Path
) -> subprocess.CompletedProcess[str]:
    """Run a program as `user` in `folder` until it ends; return its output."""
    return subprocess.run(
        _as_user(command, user, folder),
        env=_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        umask=0o077,
        check=False,
    )


def start(
    command: Sequence[str], user: pwd.struct_passwd | None, folder: Path, log: Path
) -> subprocess.Popen[bytes]:
    """Start a service in its own session, so that Ctrl-C does not stop it."""
    rotate(log)
    with open(log, "ab", opener=_open_private) as output:
        process = subprocess.Popen(
            _as_user(command, user, folder),
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            umask=0o077,
        )
    _started.append((folder, process))
    return process


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, mode=0o600)


def reap() -> None:
    """Collect the status of services that ended, so that no zombies remain."""
    for entry in [*_started]:
        if entry[1].poll() is not None:
            _started.remove(entry)


def see_off(folder: Path) -> None:
    """Wait until the services in a folder have exited, if this process started them.

    Services close their sockets and remove their files shortly before they end.
    """
    for place, process in _started:
        if place == folder:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_END_SECONDS)
    reap()


def rotate(log: Path) -> None:
    """Rotate a log that is too long, and make the logs private.

    One older file is kept. Logs contain queries and addresses, so the folder gets mode
    0700 and its files 0600, including files of earlier versions.
    Raises: ServiceError if the folder belongs to another user.
    """
    places.make_private(log.parent, None)
    for file in log.parent.iterdir():
        if file.is_file() and not file.is_symlink():
            file.chmod(0o600)
    if log.exists() and log.stat().st_size > _LOG_LIMIT_BYTES:
        log.replace(log.with_name(log.name + ".1"))


def tail(log: Path, lines: int = 8) -> str:
    """Return the last lines of a log, for an error message."""
    if not log.exists():
        return ""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - 8192))
        text = file.read().decode(errors="replace")
    return "\n".join(text.splitlines()[-lines:])


def command_line(pid: int) -> str:
    """Return the command line of a process, "" if it does not exist or is a zombie."""
    if Path("/proc/self/cmdline").exists():
        try:
            raw = Path(f"/proc/{pid}/cmdline").read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            return ""
        return raw.replace(b"\0", b" ").decode(errors="replace").strip()
    listing = subprocess.run(
        ["ps", "-o", "args=", "-p", str(pid)],
        capture_output=True,
        text=True,
        check=False,
    )
    return listing.stdout.strip()


def working_in(folder: Path, title: str) -> list[int]:
    """Return the ids of processes with this working directory and command line.

    title: the beginning of the command line. Without `/proc` the list is empty.
    """
    working, found = folder.resolve(), []
    for place in Path("/proc").glob("[0-9]*/cwd"):
        with contextlib.suppress(OSError):  # it has ended, or is another user's
            pid = int(place.parent.name)
            if place.readlink() == working and command_line(pid).startswith(title):
                found.append(pid)
    return found


def _as_user(
    command: Sequence[str], user: pwd.struct_passwd | None, folder: Path
) -> list[str]:
    if user is None:
        return list(command)
    return [
        *(sys.executable, "-I", "-S", launcher.__file__),
        *(str(user.pw_uid), str(user.pw_gid), str(folder)),
        *command,
    ]


def _environment() -> dict[str, str]:
    """Return a minimal environment, without PGDATA, LC_ALL and the like."""
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"}
