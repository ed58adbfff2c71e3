"""The table of well-known definitions: its source text, and the generated file.

The table contains selectors and topics, so that they can be reviewed and searched, and
are not computed in each process.
"""

from __future__ import annotations

import re
from pathlib import Path

import orjson

from abi.definitions import Definition, parse_definition

SOURCE = Path(__file__).with_name("standards.txt")
TABLE = Path(__file__).with_name("selectors.json")

_HEADING = re.compile(r"\[([^\]]+)\] https://\S+")


def write_table() -> bytes:
    """Return the content of the table, as the source defines it.

    Raises: ValueError for a malformed line of the source.
    """
    interfaces: dict[str, list[str]] = {}
    definitions: dict[str, Definition] = {}
    interface = ""
    for line in SOURCE.read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        heading = _HEADING.fullmatch(line)
        if heading is not None:
            interface = heading[1]
            continue
        definition = parse_definition(line)
        definitions.setdefault(definition.line, definition)
        interfaces.setdefault(definition.line, []).append(interface)
    rows = [
        {
            "key": f"0x{definition.key.hex()}",
            "line": line,
            "interfaces": interfaces[line],
        }
        for line, definition in definitions.items()
    ]
    body = b",\n".join(map(orjson.dumps, rows))
    return b"[\n%b\n]\n" % body


def read_table() -> list[tuple[bytes, Definition]]:
    """Return each definition with its selector or topic, in the order of the source."""
    return [
        (
            bytes.fromhex(row["key"][2:]),
            parse_definition(row["line"], tuple(row["interfaces"])),
        )
        for row in orjson.loads(TABLE.read_bytes())
    ]
