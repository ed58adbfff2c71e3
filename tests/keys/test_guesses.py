"""Keys that nobody has take the same way as others: how long that takes tells nothing.

The way is what is compared here, question by question and step by step, and not the time.
No text that a client sends is ever compared with a secret: its SHA-256 is looked up, which
nobody can bring near another one. A test of times would have to tell microseconds from the
noise of the machine that runs it: it would fail for nothing, or notice nothing.
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
    """Return how often the database is asked for a key, and answers it from memory."""
    grants: Grants = running.service.grants
    before = grants.misses, grants.hits
    with suppress(RpcError):
        running.ask(grants.resolve, key)
    return grants.misses - before[0], grants.hits - before[1]


def steps(folder: Path, run: Callable[[], object]) -> int:
    """Return how many instructions Python executes in a folder's modules meanwhile."""
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
    """Return three well-formed keys that differ from another one in one place."""
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
    running.ask(running.service.grants.resolve, secret)  # now it is remembered
    folder = Path(keys.__file__).parent

    def least(tries: list[str]) -> int:
        # Whatever else the service does meanwhile adds to some.
        return min(steps(folder, partial(questions, running, key)) for key in tries)

    taken = {least(tries) for tries in guesses}
    assert len(taken) == 1
    assert min(taken) > 100


def test_step_counts_reveal_a_comparison_that_stops_early() -> None:
    """What the test above would see if a secret were compared with a guess."""

    def compare(secret: str, guess: str) -> bool:
        return all(mine == other for mine, other in zip(secret, guess, strict=True))

    secret = make_key()
    taken = {
        steps(Path(__file__), partial(compare, secret, near(secret, place)[0]))
        for place in (0, 15, 29)
    }
    assert len(taken) == 3


def test_malformed_keys_cost_no_query(running: Serving) -> None:
    """That it is told at once gives away the checksum's rule, which is public."""
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
