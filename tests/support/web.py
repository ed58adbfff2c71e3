"""httpx with a longer timeout, because 5 s may be too short on a busy machine.

All clients share one TLS context: loading the certificate authorities takes 30 ms.
"""

from __future__ import annotations

from functools import partial

import httpx

from tests.support.waiting import PATIENCE_SECONDS

_options = {"timeout": PATIENCE_SECONDS, "verify": httpx.create_ssl_context()}

get = partial(httpx.get, **_options)
head = partial(httpx.head, **_options)
options = partial(httpx.options, **_options)
post = partial(httpx.post, **_options)
request = partial(httpx.request, **_options)
stream = partial(httpx.stream, **_options)
Client = partial(httpx.Client, **_options)
