"""Change to another user and execute a program. Root runs this module as a script.

The user of a service often can't reach the program or its data: a clone in /root puts
both behind a folder with mode 0700. The launcher does not change modes and does not add
users. Instead, it keeps one capability across the change of user, as an *ambient* one.
Ambient capabilities survive exec, and the dynamic loader does not treat the program as
privileged. The launcher tries no capability first, then CAP_DAC_READ_SEARCH (read and
search anything), then CAP_DAC_OVERRIDE.

access(2), with which PostgreSQL finds its own programs, ignores capabilities by
default. The securebit NO_SETUID_FIXUP makes access(2) use them.

Source: capabilities(7), "Transformation of capabilities during execve()" and "The
securebits flags"; access_override_creds() in Linux' fs/open.c
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from collections.abc import Sequence

CAP_DAC_OVERRIDE = 1
CAP_DAC_READ_SEARCH = 2

_PR_SET_KEEPCAPS = 8
_PR_SET_SECUREBITS = 28
_SECBIT_NO_SETUID_FIXUP = 1 << 2
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_RAISE = 2
_CAPABILITY_VERSION_3 = 0x20080522

EXIT_UNREACHABLE = 126
"""Exit code if the program can't be executed with any capability, as a shell returns
it."""


class _Header(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]


class _Data(ctypes.Structure):
    _fields_ = [
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    ]


def _call(name: str, *arguments: object) -> None:
    """Call a function of the C library. Raises: OSError if it fails."""
    function = getattr(ctypes.CDLL(None, use_errno=True), name)
    if function(*arguments) != 0:
        raise OSError(ctypes.get_errno(), f"{name}: {os.strerror(ctypes.get_errno())}")


def _prctl(operation: int, *arguments: int) -> None:
    values = [*arguments, 0, 0, 0, 0][:4]
    _call("prctl", operation, *map(ctypes.c_ulong, values))


def _set_capabilities(effective: int, permitted: int) -> None:
    """Set this thread's capabilities, as bit masks of the first 32."""
    header = _Header(_CAPABILITY_VERSION_3, 0)
    data = (_Data * 2)(_Data(effective, permitted, effective), _Data(0, 0, 0))
    _call("capset", ctypes.byref(header), ctypes.byref(data))


def permitted_capabilities() -> int:
    """Return the bit mask of this thread's permitted capabilities."""
    header = _Header(_CAPABILITY_VERSION_3, 0)
    data = (_Data * 2)()
    _call("capget", ctypes.byref(header), ctypes.byref(data))
    return int(data[0].permitted)


def become(uid: int, gid: int, capabilities: int) -> None:
    """Change to another user irreversibly, keeping some capabilities permitted."""
    if capabilities:
        _prctl(_PR_SET_KEEPCAPS, 1)
        # Needs CAP_SETPCAP; without it only the data may lie behind closed folders.
        with contextlib.suppress(OSError):
            _prctl(_PR_SET_SECUREBITS, _SECBIT_NO_SETUID_FIXUP)
    os.setgroups([])
    os.setgid(gid)
    os.setuid(uid)
    if capabilities:
        _set_capabilities(0, capabilities)


def _raise_ambient(capability: int, permitted: int) -> None:
    """Make one capability ambient, so that the executed program has it."""
    _set_capabilities(1 << capability, permitted)
    _prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE, capability)


def _enter(folder: str) -> bool:
    """Change to the program's working directory. Return whether that is permitted."""
    try:
        os.chdir(folder)
        os.listdir(folder)
    except PermissionError:
        return False
    return True


def execute(uid: int, gid: int, folder: str, command: list[str]) -> None:
    """Execute the program as another user. Return only if no capability suffices."""
    ladder: list[int] = []
    permitted = 0
    if sys.platform == "linux":
        held = permitted_capabilities()
        ladder = [c for c in (CAP_DAC_READ_SEARCH, CAP_DAC_OVERRIDE) if held >> c & 1]
        permitted = sum(1 << c for c in ladder)
    become(uid, gid, permitted)
    for step in (None, *ladder):
        if step is not None:
            _raise_ambient(step, permitted)
        if _enter(folder):
            try:
                os.execv(command[0], command)
            except PermissionError:
                continue


def main(arguments: Sequence[str]) -> int:
    """Run `launcher.py UID GID FOLDER PROGRAM [ARGUMENT …]`."""
    uid, gid, folder, *command = arguments
    os.umask(0o077)
    try:
        execute(int(uid), int(gid), folder, command)
    except OSError as error:
        print(f"can't run {command[0]} as user {uid}: {error}", file=sys.stderr)
        return EXIT_UNREACHABLE
    print(
        f"user {uid} can't access {command[0]} or {folder}, and this process has no "
        "capability that would permit it. Move the project and VAR_DIR to folders that "
        "all users can enter, start as an ordinary user, or set DATABASE_URL and "
        "REDIS_URL.",
        file=sys.stderr,
    )
    return EXIT_UNREACHABLE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
