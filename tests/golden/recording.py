"""The checked-in files with geth's responses, compressed for each chain.

Each part of the requests has its own file. The first line of a file names geth's version and the chain's newest block. Each other line
is one call: `group`, `method`, `params`, and `result` or `error`.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "recorded"


@dataclass(frozen=True, slots=True)
class Call:
    """A request, and the group of requests whose responses are compared together."""

    group: str
    method: str
    params: list[Any]


@dataclass(frozen=True, slots=True)
class Recorded:
    """A request with geth's response: `{"result": …}` or `{"error": …}`."""

    call: Call
    response: dict[str, Any]


@dataclass(frozen=True)
class Recording:
    """All recorded calls to one chain.

    geth: its version. head: the hash of the chain's newest block, 0x-prefixed.
    """

    geth: str
    head: str
    calls: list[Recorded]

    def group(self, name: str) -> list[Recorded]:
        """Return the recorded calls of a group."""
        return [each for each in self.calls if each.call.group == name]

    def find(self, method: str, *params: Any) -> dict[str, Any]:
        """Return geth's response to a recorded call. Raises: KeyError."""
        return self._responses[method, json.dumps(params)]

    @cached_property
    def _responses(self) -> dict[tuple[str, str], dict[str, Any]]:
        return {
            (each.call.method, json.dumps(each.call.params)): each.response
            for each in self.calls
        }


def write(name: str, part: str, recording: Recording) -> bool:
    """Write a part of a chain's recording; return False if the file has the same content.

    A file with the same content is left alone, because another version of liblzma may
    compress it to other bytes.
    """
    lines: list[dict[str, Any]] = [{"geth": recording.geth, "head": recording.head}]
    for recorded in recording.calls:
        call = recorded.call
        request = {"group": call.group, "method": call.method, "params": call.params}
        lines.append({**request, **recorded.response})
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    content, path = text.encode(), _path(name, part)
    if path.exists() and lzma.decompress(path.read_bytes()) == content:
        return False
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(lzma.compress(content, preset=9 | lzma.PRESET_EXTREME))
    return True


def read(name: str, parts: Iterable[str]) -> Recording:
    """Return a chain's recording, put together from its parts.

    Raises: ValueError if they are of different chains or versions of geth.
    """
    found = [_read(_path(name, part)) for part in parts]
    if len({(part.geth, part.head) for part in found}) != 1:
        raise ValueError(f"the parts of {name} do not belong together")
    calls = [call for part in found for call in part.calls]
    return Recording(found[0].geth, found[0].head, calls)


def _read(path: Path) -> Recording:
    first, *lines = lzma.decompress(path.read_bytes()).splitlines()
    head = json.loads(first)
    calls = []
    for line in lines:
        fields = json.loads(line)
        names = (fields.pop("group"), fields.pop("method"), fields.pop("params"))
        calls.append(Recorded(Call(*names), fields))
    return Recording(head["geth"], head["head"], calls)


def _path(name: str, part: str) -> Path:
    return FOLDER / f"{name}.{part}.jsonl.xz"
