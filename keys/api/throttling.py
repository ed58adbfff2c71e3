"""Rate limits for requests with a token, and for attempts with invalid tokens."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Hashable
from math import ceil
from threading import Lock
from typing import Any

from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from keys.limiter.gcra import SECOND, Bucket, Limits, Verdict, take

OF_TOKEN = Limits(rate=20, burst=100)
"""Limit of requests with one token. Each process counts separately."""

OF_INVALID = Limits(rate=1, burst=30)
"""Limit of invalid tokens from one client address. Each process counts separately."""

MAX_BUCKETS = 10_000
"""Maximum number of buckets of each kind. Evicting the oldest one resets its limit."""


class Gate:
    """A rate limiter in this process, with the arithmetic of `keys.limiter`."""

    def __init__(self) -> None:
        self._buckets: OrderedDict[Hashable, Bucket] = OrderedDict()
        self._lock = Lock()

    def pass_through(self, client: Hashable, limits: Limits) -> int:
        """Count a request; return 0 if it is allowed, otherwise the seconds to wait."""
        now = int(time.time() * SECOND)
        with self._lock:
            bucket = self._buckets.pop(client, Bucket())
            self._buckets[client], outcome = take(bucket, limits, now, needed=1)
            if len(self._buckets) > MAX_BUCKETS:
                self._buckets.popitem(last=False)
        if outcome.verdict == Verdict.GIVEN:
            return 0
        return ceil(outcome.wait / SECOND)

    def forget(self) -> None:
        """Reset all limits."""
        with self._lock:
            self._buckets.clear()


gate = Gate()


class TokenThrottle(BaseThrottle):
    """Limits the rate of requests with one token."""

    def __init__(self) -> None:
        self._wait = 0

    def allow_request(self, request: Request, view: Any) -> bool:
        """Return whether the token's limit permits the request."""
        if request.auth is None:  # a public view
            return True
        self._wait = gate.pass_through(("token", request.auth.pk), OF_TOKEN)
        return not self._wait

    def wait(self) -> float:
        """Return the seconds after which the client may retry."""
        return float(self._wait)
