"""How often tokens may ask, and how often somebody may show wrong ones."""

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
"""Requests, of one token, in each process: programs of staff, not customers' calls."""

OF_STRANGER = Limits(rate=1, burst=30)
"""Wrong tokens, from one address."""

MAX_BUCKETS = 10_000
"""Of each kind; the oldest is forgotten, which lets somebody in sooner."""


class Gate:
    """Counts in this process, with the arithmetic of the node's limiter."""

    def __init__(self) -> None:
        self._buckets: OrderedDict[Hashable, Bucket] = OrderedDict()
        self._lock = Lock()

    def pass_through(self, who: Hashable, limits: Limits) -> int:
        """Count one; return 0, or after how many seconds it may be tried again."""
        now = int(time.time() * SECOND)
        with self._lock:
            bucket = self._buckets.pop(who, Bucket())
            self._buckets[who], outcome = take(bucket, limits, now, needed=1)
            if len(self._buckets) > MAX_BUCKETS:
                self._buckets.popitem(last=False)
        if outcome.verdict == Verdict.GIVEN:
            return 0
        return ceil(outcome.wait / SECOND)

    def forget(self) -> None:
        """Begin anew."""
        with self._lock:
            self._buckets.clear()


gate = Gate()


class TokenThrottle(BaseThrottle):
    """Lets a token ask so and so often."""

    def __init__(self) -> None:
        self._wait = 0

    def allow_request(self, request: Request, view: Any) -> bool:
        """Return whether the request is let through."""
        if request.auth is None:  # what is public
            return True
        self._wait = gate.pass_through(("token", request.auth.pk), OF_TOKEN)
        return not self._wait

    def wait(self) -> float:
        """Return the seconds after which to try again."""
        return float(self._wait)
