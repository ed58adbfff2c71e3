"""Reading a genesis.json that a command names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import orjson
from django.core.management.base import CommandError


def read_genesis(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file.

    Raises: CommandError. The message is one line with the file's name.
    """
    try:
        text = path.read_text()
        # The EVM has raised Python's recursion limit so far that `json` could crash
        # on lists in lists; orjson refuses those, but rounds total difficulties.
        orjson.loads(text)
        genesis = json.loads(text)
    except (OSError, ValueError) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise CommandError(f"{path}: {reason}") from error
    if not isinstance(genesis, dict):
        raise CommandError(f"{path}: a genesis.json is a JSON object")
    return genesis
