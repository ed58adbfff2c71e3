"""The latest failed calls of a key, and the unknown methods called with it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.utils import timezone

from keys.metering.failures import KEEP_NAMES_DAYS
from keys.models import ApiKey, KeyFailures
from keys.served_methods import served_methods, similar_method
from networks.models import Network

MAX_UNKNOWN = 20
"""Most unknown methods shown, the most frequent ones."""

REVERT_CODE = 3
"""Code of the error of a reverted call, as in geth."""


@dataclass(frozen=True, slots=True)
class FailedCall:
    """A call, or a whole request, that was answered with an error.

    network: its name, "" if the key itself was rejected.
    method: "" if a whole request was rejected.
    error: `data.reason`, or the class of an error without one.
    """

    at: datetime
    network: str
    method: str
    code: int
    error: str

    @property
    def reason(self) -> str:
        """The error as text: its reason, such as rate_limited, or words such as "invalid params"."""
        if self.code == REVERT_CODE:
            return "execution reverted"
        if not self.error[:1].isupper():
            return self.error
        return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", self.error).lower()


@dataclass(frozen=True, slots=True)
class UnknownMethod:
    """A method that does not exist, and how often it was called.

    name: "" if the name was empty.
    suggestion: the served method with the most similar name, or "".
    """

    name: str
    calls: int
    last_at: datetime
    suggestion: str


@dataclass(frozen=True, slots=True)
class Failures:
    """A key's failed calls, the latest first, and unknown methods, the most frequent first."""

    latest: list[FailedCall]
    unknown: list[UnknownMethod]


def failures_of(api_key: ApiKey) -> Failures:
    """Return the failures of a key, with a delay of some seconds."""
    row = KeyFailures.objects.filter(api_key=api_key).first()
    if row is None:
        return Failures([], [])
    names = dict(Network.objects.values_list("pk", "name"))
    latest = [
        FailedCall(_moment(at), names.get(network, ""), method, code, reason)
        for at, network, method, code, reason in row.latest
    ]
    return Failures(latest, _unknown(row))


def _unknown(row: KeyFailures) -> list[UnknownMethod]:
    since = timezone.now() - timedelta(days=KEEP_NAMES_DAYS)
    counted = sorted(
        row.unknown_methods.items(), key=lambda one: (-one[1][0], -one[1][1])
    )
    recent = [
        (name, calls, _moment(at))
        for name, (calls, at) in counted
        if _moment(at) > since
    ][:MAX_UNKNOWN]
    served = served_methods() if recent else {}
    return [
        UnknownMethod(name, calls, at, similar_method(name, served))
        for name, calls, at in recent
    ]


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
