"""Unknown keys are processed like known ones, so that the time reveals nothing.

These tests compare queries and executed instructions instead of times.
The service compares no text from a client with a secret. It looks up the text's SHA-256,
which an attacker can't choose to be similar to another one. A test of times would have to
distinguish microseconds from noise, and would be unreliable.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import keys
from jsonrpc.errors import RpcError
from keys.format import checksum, make_key
from keys.grants import Grants
from keys.models import User
from keys.services import issue_key, revoke_version
from tests.support.serving import Serving, serving

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def running() -> Iterator[Serving]:
    with serving() as running:
        yield running


def questions(running: Serving, key: str) -> tuple[int, int]:
    """Return the numbers of cache misses and cache hits for a key."""
    grants: Grants = running.service.grants
    before = grants.misses, grants.hits
    with suppress(RpcError):
        running.ask(grants.resolve, key)
    return grants.misses - before[0], grants.hits - before[1]


def steps(folder: Path, run: Callable[[], object]) -> int:
    """Return the number of bytecode instructions that modules of a folder execute."""
    count = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        if not frame.f_code.co_filename.startswith(str(folder)):
            return None
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        run()
    finally:
        sys.settrace(before)
    return count


def near(key: str, place: int) -> list[str]:
    """Return three well-formed keys that differ from a key in one character."""
    random = key[3:-6]
    others = [letter for letter in "ABCD" if letter != random[place]][:3]
    made = [random[:place] + other + random[place + 1 :] for other in others]
    return [f"nk_{random}{checksum(random)}" for random in made]


def test_guess_costs_one_question_however_near_it_is(running: Serving) -> None:
    owner = User.objects.create(email="owner@example.org")
    issued = issue_key(owner=owner)
    revoked = issue_key(owner=owner)
    revoke_version(version=revoked.version, reason="leaked")
    secret = issued.secret
    guesses = [make_key(), *(near(secret, place)[0] for place in (0, 15, 29))]
    assert {questions(running, key) for key in [*guesses, secret, revoked.secret]} == {
        (1, 0)
    }


def test_guess_takes_as_many_steps_however_near_it_is(running: Serving) -> None:
    secret = issue_key(owner=User.objects.create(email="owner@example.org")).secret
    far = [make_key() for _ in range(3)]
    guesses = [far, *(near(secret, place) for place in range(30))]
    running.ask(running.service.grants.resolve, secret)  # now the result is cached
    folder = Path(keys.__file__).parent

    def least(tries: list[str]) -> int:
        # Background work of the service may add instructions to some runs.
        return min(steps(folder, partial(questions, running, key)) for key in tries)

    taken = {least(tries) for tries in guesses}
    assert len(taken) == 1
    assert min(taken) > 100


def test_step_counts_reveal_a_comparison_that_stops_early() -> None:
    """This shows that the test above would notice a comparison of a secret with a guess."""

    def compare(secret: str, guess: str) -> bool:
        return all(mine == other for mine, other in zip(secret, guess, strict=True))

    secret = make_key()
    taken = {
        steps(Path(__file__), partial(compare, secret, near(secret, place)[0]))
        for place in (0, 15, 29)
    }
    assert len(taken) == 3


def test_malformed_keys_cost_no_query(running: Serving) -> None:
    """The quick response reveals the rule of the checksum, which is public."""
    for key in ("", "nk_", "nk_" + "A" * 36, make_key()[:-1], make_key("mt_")):
        assert questions(running, key) == (0, 0)


def test_second_attempt_is_answered_from_memory_for_any_key(
    running: Serving,
) -> None:
    owner = User.objects.create(email="owner@example.org")
    revoked = issue_key(owner=owner)
    revoke_version(version=revoked.version, reason="leaked")
    keys = (make_key(), revoked.secret, issue_key(owner=owner).secret)
    running.ask(
        running.service.subscriber.catch_up
    )  # a change of a key removes it from the cache
    for key in keys:
        assert questions(running, key)[0] == 1
        assert questions(running, key)[0] == 0
