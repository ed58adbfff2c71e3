"""A trace worker that is killed from outside, as the kernel does when memory runs out."""

from __future__ import annotations

import os
import signal
import threading
from typing import Any

import httpx
import psutil

from keys.models import Span, UsageBucket
from keys.services import get_or_create_customer, issue_key
from keys.services.limits import set_limits
from nodeapi.tracing.worker import NICENESS
from tests.nodeapi.tracing.pools import wait_until_executing
from tests.support import sample
from tests.support.commands import descendants
from tests.support.live import Live, api_key_of, request
from tests.support.waiting import PATIENCE_SECONDS, wait_until

ENDLESS = (
    "{ step: function() { while (true); }, fault: function() {},"
    "  result: function() { return 1; } }"
)
METHOD = "debug_traceBlockByNumber"
RAW_BLOCKS = sample.raw_blocks()
BLOCK = hex(1 + max(range(len(RAW_BLOCKS)), key=lambda index: len(RAW_BLOCKS[index])))
"""The longest block, whose transactions run code."""


def trace_worker() -> int | None:
    """Return the trace worker that executes a job, which has a low-priority thread."""
    for pid in descendants("tracing.worker"):
        threads = [thread.id for thread in psutil.Process(pid).threads()]
        if NICENESS in [os.getpriority(os.PRIO_PROCESS, thread) for thread in threads]:
            return pid
    return None


def test_request_fails_with_an_internal_error_that_costs_nothing(live: Live) -> None:
    owner = get_or_create_customer(email="owner@example.org")
    issued = issue_key(owner=owner, may_trace=True)
    set_limits(api_key=issued.api_key, credits_per_second=1, burst=100)
    live.secrets.append(issued.secret)
    options = {"tracer": ENDLESS, "timeout": "60s"}
    answers: list[httpx.Response] = []
    with live.api(key=issued.secret) as api, live.api(key=issued.secret) as other:
        asking = threading.Thread(
            target=lambda: answers.append(api.send(request(METHOD, BLOCK, options)))
        )
        asking.start()
        killed = wait_until(trace_worker)
        wait_until_executing(killed)
        os.kill(killed, signal.SIGKILL)
        asking.join(PATIENCE_SECONDS)
        (answer,) = answers
        assert answer.status_code == 200
        error = answer.json()["error"]
        assert error == {"code": -32603, "message": "method handler crashed"}
        # The 20 credits of the trace were refunded.
        calls = [{**request("eth_chainId"), "id": number} for number in range(100)]
        assert other.send(calls).status_code == 200
        wait_until(lambda: uses(issued.secret))
        assert uses(issued.secret) == [("server_error", 1, 0)]
        set_limits(api_key=issued.api_key)
        entries = wait_until(lambda: traced(other))
        assert all("structLogs" in entry["result"] for entry in entries)
    assert f"trace worker {killed} died (status -9)" in live.log()


def traced(api: Any) -> Any:
    """Return the struct logger's answer, from another worker."""
    return api.send(request(METHOD, BLOCK)).json().get("result")


def uses(secret: str) -> list[tuple[str, int, int]]:
    """Return outcome, calls and credits of the key's traces, by minute."""
    found = UsageBucket.objects.filter(
        api_key=api_key_of(secret), span=Span.MINUTE, method=METHOD
    )
    return list(found.values_list("outcome", "calls", "credits"))
