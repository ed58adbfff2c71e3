"""Starting programs as the right user, and telling who runs."""

from __future__ import annotations

import contextlib
import os
import pwd
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from config.embedded import launcher

_LOG_LIMIT_BYTES = 16 * 1024 * 1024
"""A log that is longer when its service starts makes room for a new one."""

_END_SECONDS = 10
"""How long a service that has said good-bye may take to be gone."""

_started: list[tuple[Path, subprocess.Popen[bytes]]] = []
# With their folders. Kept for ever: a service may outlive us, and an unreferenced Popen
# complains.


def run(
    command: Sequence[str], user: pwd.struct_passwd | None, folder: Path
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end as `user`, in `folder`; its output is returned."""
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
    """Start a service in a session of its own, so that Ctrl-C does not reach it."""
    rotate(log)
    with log.open("ab") as output:
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


def reap() -> None:
    """Take note of services that ended, so that they do not linger as zombies."""
    for entry in [*_started]:
        if entry[1].poll() is not None:
            _started.remove(entry)


def see_off(folder: Path) -> None:
    """Wait for the end of the services of a folder, if we have started them.

    They close their sockets and remove their files a moment before they are gone.
    """
    for place, process in _started:
        if place == folder:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_END_SECONDS)
    reap()


def rotate(log: Path) -> None:
    """Make room in a log that has become long: one older file is kept."""
    log.parent.mkdir(parents=True, exist_ok=True)
    if log.exists() and log.stat().st_size > _LOG_LIMIT_BYTES:
        log.replace(log.with_name(log.name + ".1"))


def tail(log: Path, lines: int = 8) -> str:
    """Return a log's last lines, for an error that has to explain itself."""
    if not log.exists():
        return ""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - 8192))
        text = file.read().decode(errors="replace")
    return "\n".join(text.splitlines()[-lines:])


def command_line(pid: int) -> str:
    """Return the arguments of a process, "" when there is none or it is a zombie."""
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
    """Return a bare environment: PGDATA, LC_ALL and the like must not leak in."""
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"}
