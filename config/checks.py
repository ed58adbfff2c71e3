"""System checks of the database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core.checks import CheckMessage, Error, Tags, register
from django.db import connections


@register(Tags.database)
def check_encoding(
    databases: Sequence[str] | None = None, **_: Any
) -> list[CheckMessage]:
    """Return an error for each database whose encoding is not UTF-8.

    `migrate` runs this check before it applies a migration. A database with the encoding
    SQL_ASCII, the default of clusters with the locale C, measures columns in bytes
    instead of characters.
    Source: https://www.postgresql.org/docs/current/multibyte.html
    """
    found: list[CheckMessage] = []
    for alias in databases or ():
        with connections[alias].cursor() as cursor:
            cursor.execute("SHOW server_encoding")
            (encoding,) = cursor.fetchone()
        if encoding != "UTF8":
            found.append(
                Error(
                    f"The database's encoding is {encoding}.",
                    hint="Make it with createdb --encoding UTF8 --template template0.",
                    id="config.E001",
                )
            )
    return found
