"""Folders of the embedded services, and the user that owns their files."""

from __future__ import annotations

import contextlib
import hashlib
import os
import pwd
import re
import stat
from pathlib import Path

from config.embedded.errors import ServiceError

POSTGRES_PORT = 5432
"""No TCP port is opened: the number is only part of the socket's file name."""

SOCKET_PATH_LIMIT = 103
"""Longest path of a unix socket in bytes, the least of Linux (107) and the BSDs."""

_LONGEST_SOCKET_NAME = len(f"/.s.PGSQL.{POSTGRES_PORT}")
# A comma separates hosts for libpq; quotes and backslashes would need escaping.
_PLAIN_PATH = re.compile(r"[A-Za-z0-9_./+@:=~ -]+\Z")


def socket_dir(var_dir: Path) -> Path:
    """Return the folder of both sockets, which depends on VAR_DIR only.

    It is inside VAR_DIR if the paths fit into a socket address, and otherwise a folder
    under /tmp whose name is derived from VAR_DIR. TMPDIR is not used, because two shells
    with the same VAR_DIR have to use the same sockets.
    """
    inside = var_dir / "sockets"
    fits = len(os.fsencode(inside)) + _LONGEST_SOCKET_NAME <= SOCKET_PATH_LIMIT
    if fits and _PLAIN_PATH.match(str(inside)):
        return inside
    digest = hashlib.sha256(os.fsencode(var_dir)).hexdigest()
    return Path("/tmp") / f"portcullis-{digest[:16]}"


def service_user(data_dir: Path) -> pwd.struct_passwd | None:
    """Return the user that runs the services, None for the current user.

    PostgreSQL refuses to run as root. Root starts it as the owner of the existing data,
    otherwise as `nobody`, otherwise as the user with the lowest id except root.
    Raises: ServiceError if the machine has no user except root.
    """
    if os.geteuid() != 0:
        return None
    try:
        owner = data_dir.stat().st_uid
        if owner != 0:
            return pwd.getpwuid(owner)
    except (FileNotFoundError, KeyError):
        pass
    try:
        return pwd.getpwnam("nobody")
    except KeyError:
        others = [user for user in pwd.getpwall() if user.pw_uid != 0]
    if not others:
        raise ServiceError(
            "PostgreSQL does not run as root and this machine has no other user: "
            "start as an ordinary user, or set DATABASE_URL"
        )
    return min(others, key=lambda user: user.pw_uid)


def make_private(path: Path, user: pwd.struct_passwd | None) -> None:
    """Create a folder that only the service's user can enter, or check an existing one.

    Raises: ServiceError if the path is not a folder or belongs to another user.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        status = path.lstat()
        trusted = {os.geteuid(), user.pw_uid if user else os.geteuid()}
        if not stat.S_ISDIR(status.st_mode) or status.st_uid not in trusted:
            raise ServiceError(
                f"{path} belongs to another user (uid {status.st_uid}): remove it, "
                "or choose another VAR_DIR"
            ) from None
    if user is not None:
        os.chown(path, user.pw_uid, user.pw_gid)
    path.chmod(0o700)


def forget_socket_dir(var_dir: Path) -> None:
    """Remove an empty folder of sockets under /tmp."""
    folder = socket_dir(var_dir)
    if folder.parent != var_dir:
        with contextlib.suppress(OSError):  # not empty: something still runs
            folder.rmdir()
