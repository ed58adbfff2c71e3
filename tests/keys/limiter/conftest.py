from __future__ import annotations

from itertools import count

import pytest

from keys.limiter.buckets import Buckets
from keys.limiter.limiter import Limiter
from tests.support.waiting import PATIENCE_SECONDS

ids = count(1)


@pytest.fixture
def limiter_on(redis_url):
    """Return a function that creates limiters on the shared Redis, with a long timeout."""
    return lambda: Limiter(Buckets(redis_url, timeout=PATIENCE_SECONDS))


@pytest.fixture
def api_key_id(redis_url):
    return 2_000_000 + next(ids)
