"""Reading a genesis.json that a command names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from nodeapi.new_network import parse_genesis


def read_genesis(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file.

    Raises: CommandError. The message is one line with the file's name.
    """
    try:
        return parse_genesis(path.read_text())
    except (OSError, ValueError) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise CommandError(f"{path}: {reason}") from error
