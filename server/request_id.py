"""The id of a request in the log and in the response."""

from __future__ import annotations

import re
import secrets
from functools import cache
from itertools import count

_ACCEPTED = re.compile(rb"[-_.:0-9A-Za-z]{1,128}")


@cache
def _prefix() -> bytes:
    """Return the random prefix of this process's ids, drawn when it is first used."""
    return secrets.token_hex(4).encode()


class RequestId:
    """The id of a request: its X-Request-Id header, or a generated one.

    given: the header's value. It is ignored unless it has 1 to 128 letters, digits,
        `-_.:`.

    The id is generated when it is first used, because most requests need none.
    """

    __slots__ = ("_value",)

    _value: bytes
    _numbers = count(1)

    def __init__(self, given: bytes | None = None) -> None:
        if given is not None and _ACCEPTED.fullmatch(given):
            self._value = given

    def __bytes__(self) -> bytes:
        """Return the id as a header's value."""
        try:
            return self._value
        except AttributeError:
            self._value = b"%b-%x" % (_prefix(), next(self._numbers))
            return self._value

    def __str__(self) -> str:
        return bytes(self).decode()
