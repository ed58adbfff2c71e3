"""The soak test reports wrong responses and notifications."""

from __future__ import annotations

import random
from typing import Any

import pytest

from bench.soak_chain import STABLE_BLOCKS, TRANSFERS, Shown, SoakChain
from bench.soak_checks import Events, Question, Wrong


def head(shown: Shown) -> dict[str, Any]:
    return {"hash": shown.hash}


def logs(shown: Shown, *, removed: bool = False) -> list[dict[str, Any]]:
    return [
        {
            "blockHash": shown.hash,
            "blockNumber": hex(shown.number),
            "logIndex": hex(index),
            "removed": removed,
        }
        for index in range(TRANSFERS)
    ]


def send(events: Events, shown: Shown) -> None:
    events.head(head(shown))
    for log in logs(shown):
        events.log(log)


@pytest.fixture
def chain() -> SoakChain:
    chain = SoakChain()
    for _ in range(4):
        chain.grow()
    return chain


def test_events_of_a_reorganisation(chain: SoakChain) -> None:
    events = Events(chain)
    for shown in chain.line[1:]:
        send(events, shown)
    chain.keep_branch()
    (old,) = chain.grow()
    send(events, old)
    first, second = chain.reorganise()
    assert first.parent_hash == old.parent_hash
    for log in logs(old, removed=True):
        events.log(log)
    send(events, first)
    send(events, second)
    for _ in range(3 * STABLE_BLOCKS):
        send(events, *chain.grow())


def test_missing_and_repeated_heads(chain: SoakChain) -> None:
    events = Events(chain)
    events.head(head(chain.line[1]))
    with pytest.raises(Wrong, match="no head before 3"):
        events.head(head(chain.line[3]))
    events = Events(chain)
    events.head(head(chain.line[1]))
    with pytest.raises(Wrong, match=r"head 1 .* twice"):
        events.head(head(chain.line[1]))
    with pytest.raises(Wrong, match="unknown head"):
        events.head({"hash": "0x" + "00" * 32})


def test_repeated_log(chain: SoakChain) -> None:
    events = Events(chain)
    for shown in chain.line[1:]:
        send(events, shown)
    with pytest.raises(Wrong, match="2 times"):
        events.log(logs(chain.head)[0])


def test_missing_log(chain: SoakChain) -> None:
    events = Events(chain)
    for shown in chain.line[1:]:
        send(events, shown)
    events.head(head(*chain.grow()))
    with pytest.raises(Wrong, match="has the logs"):
        for _ in range(3 * STABLE_BLOCKS):
            send(events, *chain.grow())


def test_log_that_was_not_removed(chain: SoakChain) -> None:
    events = Events(chain)
    for shown in chain.line[1:]:
        send(events, shown)
    chain.keep_branch()
    send(events, *chain.grow())
    for shown in chain.reorganise():
        send(events, shown)
    with pytest.raises(Wrong, match="keeps the logs"):
        for _ in range(3 * STABLE_BLOCKS):
            send(events, *chain.grow())


def test_balances_and_heads_are_compared(chain: SoakChain) -> None:
    for _ in range(30):
        chain.grow()
    chance = random.Random(1)
    checked = set()
    while len(checked) < 2:
        question = Question(chain, chance)
        checked.add(question.method)
        if question.method == "eth_getStorageAt":
            with pytest.raises(Wrong, match="eth_getStorageAt"):
                question.check("0x1", is_disturbed=False)
        elif question.method == "eth_blockNumber":
            question.check(hex(chain.head.number), is_disturbed=False)
            question.check("0x1", is_disturbed=True)
            with pytest.raises(Wrong):
                question.check("0x1", is_disturbed=False)
            with pytest.raises(Wrong):
                question.check(hex(chain.head.number + 1), is_disturbed=True)
        else:
            checked.discard(question.method)
