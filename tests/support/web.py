"""httpx with a longer timeout, because 5 s may be too short on a busy machine."""

from __future__ import annotations

from functools import partial

import httpx

from tests.support.waiting import PATIENCE_SECONDS

get = partial(httpx.get, timeout=PATIENCE_SECONDS)
head = partial(httpx.head, timeout=PATIENCE_SECONDS)
options = partial(httpx.options, timeout=PATIENCE_SECONDS)
post = partial(httpx.post, timeout=PATIENCE_SECONDS)
request = partial(httpx.request, timeout=PATIENCE_SECONDS)
stream = partial(httpx.stream, timeout=PATIENCE_SECONDS)
Client = partial(httpx.Client, timeout=PATIENCE_SECONDS)
