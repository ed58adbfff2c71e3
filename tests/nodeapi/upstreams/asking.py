"""Calls of upstreams whose secrets no error may show."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from nodeapi.upstreams.client import UpstreamClient
from nodeapi.upstreams.errors import UpstreamUnavailable
from tests.support.waiting import in_time

SOON = 0.3
"""Timeout of calls that are never answered, in seconds."""

SECRETS = ("secret-path", "hunter22", "token-of-ours")
HEADERS = {"X-Api-Key": "token-of-ours"}


def ask(url: str, *call: Any, **options: Any) -> Any:
    async def scenario() -> Any:
        async with UpstreamClient(url, **options) as client:
            return await in_time(client.call(*call))

    return asyncio.run(scenario())


def with_secrets(url: str) -> str:
    return url.replace("://", "://user:hunter22@")


@contextmanager
def failing() -> Iterator[pytest.ExceptionInfo[UpstreamUnavailable]]:
    """Expect UpstreamUnavailable whose texts contain no secret."""
    with pytest.raises(UpstreamUnavailable) as caught:
        yield caught
    assert caught.value.reason
    assert_no_secret(caught.value)


def assert_no_secret(error: Exception) -> None:
    texts = (*traceback.format_exception(error), repr(error), repr(vars(error)))
    assert not any(secret in text for text in texts for secret in SECRETS)
