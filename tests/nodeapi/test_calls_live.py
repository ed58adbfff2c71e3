"""Calls of customers: results, errors, batches, the cache and the price."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import psutil
import pytest

from keys.models import Span, UsageBucket
from keys.services import get_or_create_customer, issue_key
from nodeapi.methods.execution import credits_for_gas
from tests.nodeapi.tracing.test_tasks import BLOCKS, GENESIS, LOOP, REVERT, SLOT
from tests.support import copies
from tests.support.commands import descendants
from tests.support.live import Live, api_key_of, live_service
from tests.support.waiting import PATIENCE_SECONDS, wait_until

PRICE = 2
"""Credits of eth_call."""
GAS = 2_600_000


@pytest.fixture(scope="module")
def live(module_db: None) -> Iterator[Live]:
    copies.chain("tasks", GENESIS, BLOCKS)
    # Without a limit of gas, loops end at the time limit, however fast the machine is.
    with live_service(
        env={"NODEAPI_CALL_GAS": "0", "NODEAPI_CALL_TIMEOUT": "3"}
    ) as live:
        yield live


def asked(to: bytes, slot: int = 0, **members: Any) -> dict[str, Any]:
    return {"to": f"0x{to.hex()}", "input": f"0x{slot:064x}", **members}


def test_a_batch_of_calls_is_answered_in_order(live: Live) -> None:
    with live.api() as api:
        calls = [("eth_call", asked(SLOT, slot), "latest") for slot in range(40)]
        expected = [f"0x{slot + 7 if slot else 0:064x}" for slot in range(40)]
        for _ in range(2):  # the second time from the cache
            assert api.results(calls) == expected


def test_state_and_code_are_overridden_and_nothing_stays(live: Live) -> None:
    account, slot = f"0x{SLOT.hex()}", f"0x{1:064x}"
    with live.api() as api:
        overrides: dict[str, Any] = {account: {"stateDiff": {slot: f"0x{99:064x}"}}}
        call = asked(SLOT, 1)
        assert api.result("eth_call", call, "latest", overrides) == f"0x{99:064x}"
        assert api.result("eth_call", call, "latest") == f"0x{8:064x}"
        overrides = {account: {"code": "0x43600052602060 00f3".replace(" ", "")}}
        block = {"number": "0x1234"}
        found = api.result("eth_call", call, "latest", overrides, block)
        assert found == f"0x{0x1234:064x}"


def test_errors_are_geths_also_from_the_cache(live: Live) -> None:
    with live.api() as api:
        for _ in range(2):
            answer = api.ask("eth_call", asked(REVERT))
            assert answer["error"] == {
                "code": 3,
                "message": "execution reverted",
                "data": f"0x{0x2A:064x}",
            }
        assert api.error("eth_call", asked(SLOT), "0x99") == (
            -32000,
            "header not found",
        )
        assert api.error("eth_call", asked(SLOT, gas="0x1"))[1].startswith(
            "err: intrinsic gas too low: have 1, want "
        )


def test_a_call_costs_credits_for_its_gas_also_from_the_cache(live: Live) -> None:
    secret = live.new_key()
    with live.api(key=secret) as api:
        burns = {f"0x{LOOP.hex()}": {"code": "0xfe"}}  # uses all gas in little time
        for _ in range(2):
            spent = ("eth_call", asked(LOOP, gas=hex(GAS)), "latest", burns)
            assert api.error(*spent) == (-32000, "invalid opcode: INVALID")
        assert api.result("eth_call", asked(SLOT, 3)) == f"0x{10:064x}"

        expected = 3 * PRICE + 2 * credits_for_gas(GAS)
        wait_until(lambda: credits_of(secret) == expected)


def test_a_call_that_takes_too_long_costs_as_much_as_the_largest(live: Live) -> None:
    with live_service(env={"NODEAPI_CALL_TIMEOUT": "0.2"}) as hasty:
        secret = hasty.new_key()
        with hasty.api("tasks", secret) as api:
            _, message = api.error("eth_call", asked(LOOP))
            assert message == "execution aborted (timeout = 200ms)"
        expected = PRICE + credits_for_gas(50_000_000)
        wait_until(lambda: credits_of(secret) >= expected)


def test_long_calls_of_a_customer_do_not_delay_others(live: Live) -> None:
    """The customer uses two keys, and twice as many connections as there are workers."""
    other = issue_key(owner=get_or_create_customer(email="other@example.org"))
    live.secrets.append(other.secret)
    ended: list[str] = []

    def call(key: str, number: int) -> None:
        with live.api(key=key) as api:
            ended.append(api.error("eth_call", asked(LOOP, number))[1])

    keys = [live.new_key() for _ in range(2)]
    long = [
        threading.Thread(target=call, args=(keys[number % 2], number))
        for number in range(4)
    ]
    with live.api(key=other.secret) as api:
        assert api.result("eth_call", asked(SLOT, 30)) == f"0x{37:064x}"
        before = seconds_of_workers()
        for thread in long:
            thread.start()
        wait_until(lambda: seconds_of_workers() > before + 0.2)
        for slot in range(31, 34):
            assert api.result("eth_call", asked(SLOT, slot)) == f"0x{slot + 7:064x}"
        assert not ended
    for thread in long:
        thread.join(PATIENCE_SECONDS)
    assert ended == ["execution aborted (timeout = 3s)"] * 4


def seconds_of_workers() -> float:
    """Return the processor time of all processes that execute calls."""
    workers = map(psutil.Process, descendants("tracing.worker"))
    return sum(worker.cpu_times().user for worker in workers)


def credits_of(secret: str) -> int:
    """Return the credits that a key has spent for calls."""
    found = UsageBucket.objects.filter(
        api_key=api_key_of(secret), span=Span.MINUTE, method="eth_call"
    )
    return sum(found.values_list("credits", flat=True))


@pytest.mark.parametrize(
    ("gas", "credits"),
    [(0, 0), (21_000, 0), (500_000, 0), (500_001, 1), (1_000_000, 1), (50_000_000, 99)],
)
def test_each_further_half_million_gas_costs_a_credit(gas: int, credits: int) -> None:
    assert credits_for_gas(gas) == credits


def test_the_gas_cap_is_a_setting(live: Live) -> None:
    with live_service(env={"NODEAPI_CALL_GAS": "30000"}) as capped, capped.api() as api:
        assert api.error("eth_call", asked(LOOP)) == (-32000, "out of gas")
        assert api.result("eth_call", asked(SLOT, 2)) == f"0x{9:064x}"
