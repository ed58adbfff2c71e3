"""The service follows `geth --dev`, and its responses equal geth's.

The tests share one geth and may run in any order. Each leaves the service at geth's head.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from itertools import count, islice
from pathlib import Path
from typing import Any

import pytest

from tests.golden.geth import VERSION, running_geth
from tests.live import programs
from tests.live.comparing import Answering, Comparison
from tests.live.conftest import Followed
from tests.live.mirror import Mirror
from tests.live.random_chain import APIS, Building
from tests.live.service import Reorganisation, Service
from tests.support.random_blocks import FIRST_OF_AMSTERDAM, RandomBlocks
from tests.support.waiting import wait_until

SEED = 8037
DEPTHS = (1, 2, 20)
ROUNDS = 6
"""Rounds of transactions to send at least, however slow the machine is."""
PLACE = ("blockHash", "blockNumber", "blockTimestamp", "transactionIndex")
"""Members of a transaction that are null while it is pending."""
EPOCH = 32
"""`geth --dev` finalizes each block whose number is a multiple, immediately."""
LOST_BLOCKS = 8
"""Maximum number of blocks that geth loses when it is killed, because it writes its
database with a delay. If one of them is finalized, following stops, as intended."""
ATTEMPTS = 5
"""Attempts of a reorganisation, because geth may add a block between two calls."""


@pytest.fixture(autouse=True)
def consistent(followed: Followed) -> Iterator[None]:
    """Check after each test that the subscriber has geth's chain, and nothing else."""
    yield
    agree(followed)
    mirror = followed.mirror
    assert mirror.mistakes == []


def agree(followed: Followed) -> int:
    """Wait until geth, service and subscriber have one head; see `agreed`."""
    return agreed(followed.geth, followed.service, followed.mirror)


def agreed(geth: Answering, service: Service, mirror: Mirror) -> int:
    """Wait until geth, service and subscriber have one head, and compare their chains.

    Return its number.
    """

    def common() -> Any:
        head = service.call("eth_getBlockByNumber", "latest", False)
        (found,) = geth.batch([("eth_getBlockByNumber", head["number"], False)])
        assert mirror.mistakes == []
        is_same = found["result"] and found["result"]["hash"] == head["hash"]
        return head if is_same and mirror.head()[1] == head["hash"] else None

    head = wait_until(common)
    number = int(head["number"], 16)
    with mirror.lock:
        hashes = {n: h for n, h in mirror.hashes.items() if n <= number}
        logs = [log for log in mirror.logs if int(log["blockNumber"], 16) <= number]
    assert list(hashes) == list(range(min(hashes), number + 1))
    blocks = geth.batch(("eth_getBlockByNumber", hex(n), False) for n in hashes)
    assert list(hashes.values()) == [block["result"]["hash"] for block in blocks]
    receipts = geth.batch(("eth_getBlockReceipts", hex(n)) for n in hashes)
    wanted = [log for each in receipts for one in each["result"] for log in one["logs"]]
    assert logs == wanted
    return number


def test_the_first_blocks_of_amsterdam_are_followed_and_replace_others(
    followed: Followed, tmp_path: Path
) -> None:
    """A geth that builds on request crosses the fork, and later a block earlier."""
    genesis, first = RandomBlocks.genesis(SEED), FIRST_OF_AMSTERDAM
    places = count(1)
    with running_geth(programs.geth(), genesis, b"", tmp_path, apis=APIS) as geth:
        building = Building(geth, SEED)

        def build(blocks: int) -> None:
            for place in islice(places, blocks):
                building.build(place)

        with (
            closing(followed.service.follow("crossing", genesis, geth.url)) as service,
            closing(Mirror(service.socket_url)) as mirror,
        ):
            build(first + 2)
            wait_until(lambda: service.head() == first + 2)
            assert agreed(geth, service, mirror) == first + 2
            assert [has_list(service, n) for n in (first - 1, first)] == [False, True]
            comparison = Comparison(service, geth)
            comparison.compare(0, first + 2)
            # The last block before the fork is replaced by a block of Amsterdam.
            geth.call("debug_setHead", [hex(first - 2)])
            build(5)
            made = wait_until(service.reorganisations)
            wait_until(lambda: service.head() == first + 3)
            assert agreed(geth, service, mirror) == first + 3
            assert has_list(service, first - 1)
            assert made[0].fork_number == first - 2
            comparison.compare(first - 2, first + 3)
    print(f"{made}\n{comparison.summary()}")


def has_list(service: Service, number: int) -> bool:
    found = service.call("eth_getBlockByNumber", hex(number), False)
    return "blockAccessListHash" in found


def test_every_response_is_geths(followed: Followed, live_blocks: int) -> None:
    geth, service, traffic = followed.geth, followed.service, followed.traffic
    comparison = Comparison(service, geth)
    first = geth.next_block()
    sent: list[str] = []
    rounds = 0
    while geth.head() < first + live_blocks or rounds < ROUNDS:
        sent += traffic.send_round()
        rounds += 1
        geth.next_block()
    receipts = [traffic.receipt(each) for each in sent]
    last = max(int(receipt["blockNumber"], 16) for receipt in receipts)
    comparison.compare(0, 1)
    comparison.compare(first, max(last, first + live_blocks))
    assert comparison.blocks > live_blocks
    assert all(comparison.kinds[kind] >= 2 for kind in range(5)), comparison.kinds
    assert comparison.failed >= rounds // 2
    assert comparison.created >= rounds // 5
    assert comparison.logs >= rounds
    wait_until(lambda: set(sent) <= followed.mirror.announced())
    print(comparison.summary())


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_reorganisation_is_followed(followed: Followed, depth: int) -> None:
    for _ in range(ATTEMPTS):
        made = reorganise(followed, depth)
        if made.depth == depth:
            return
    raise AssertionError(f"geth is faster than its tests: {made}")


def reorganise(followed: Followed, depth: int) -> Reorganisation:
    """Rewind geth by some blocks, let it continue, and check the service.

    The reorganisation is deeper than `depth` if geth adds blocks before it goes back. It
    stays above the finalized block, because following stops at a deeper one.
    """
    geth, service, mirror = followed.geth, followed.service, followed.mirror
    before = service.reorganisations()
    removed = len(mirror.removed)
    fork = -1
    while fork < max(followed.traffic.prepared, geth.finalized()):
        wait_until(lambda: depth <= geth.head() % EPOCH < EPOCH - 4)
        followed.traffic.forget_nonces()
        sent = followed.traffic.transfer()
        number = int(followed.traffic.receipt(sent)["blockNumber"], 16)
        wait_until(lambda number=number: mirror.head()[0] >= number)
        wait_until(lambda sent=sent: mirror.has_log_of(sent))
        with mirror.lock:
            hashes, logs = dict(mirror.hashes), list(mirror.logs)
        fork = max(hashes) - depth
    geth.call("debug_setHead", hex(fork))
    made = wait_until(lambda: service.reorganisations()[len(before) :])[0]
    assert made.fork_number == fork
    assert made.depth >= depth
    if made.depth == depth:
        assert made.old_hash == hashes[max(hashes)]
    # The service continues with the next block at the latest.
    geth.next_block()
    wait_until(lambda: service.head() > fork)
    agree(followed)
    assert service.reorganisations() == [*before, made]
    demoted = {each for number, each in hashes.items() if number > fork}
    wanted = [{**log, "removed": True} for log in logs if log["blockHash"] in demoted]
    assert wanted, "a block without logs was demoted"
    with mirror.lock:
        found = [log for log in mirror.removed[removed:] if log["blockHash"] in demoted]
    # The newest log comes first, as in geth (core/blockchain.go, `reorg`).
    assert found == wanted[::-1]
    for each in demoted:
        assert service.call("eth_getBlockByHash", each, False)["hash"] == each
    followed.traffic.forget_nonces()
    after = followed.traffic.receipt(followed.traffic.transfer())
    Comparison(service, geth).compare(fork, int(after["blockNumber"], 16))
    return made


def test_geth_is_killed_and_comes_back(followed: Followed) -> None:
    geth, service, traffic = followed.geth, followed.service, followed.traffic
    wait_until(lambda: geth.head() > traffic.prepared + LOST_BLOCKS)
    wait_until(lambda: LOST_BLOCKS <= geth.head() % EPOCH < EPOCH - 4)
    before = traffic.receipt(traffic.transfer())
    geth.kill()
    # The service continues with its stored blocks.
    assert traffic_receipt(followed, before["transactionHash"]) == before
    wait_until(lambda: service.call("eth_syncing"))
    geth.start()
    geth.next_block()
    traffic.forget_nonces()
    after = traffic.receipt(traffic.transfer())
    wait_until(lambda: service.call("eth_syncing") is False)
    agree(followed)
    first, last = (int(each["blockNumber"], 16) for each in (before, after))
    Comparison(service, geth).compare(first, last)


def traffic_receipt(followed: Followed, transaction: str) -> Any:
    return followed.service.call("eth_getTransactionReceipt", transaction)


def test_safe_and_finalized_are_geths(followed: Followed) -> None:
    geth, service = followed.geth, followed.service
    for tag in ("safe", "finalized", "latest"):
        for full in (False, True):
            call = ("eth_getBlockByNumber", tag, full)
            wait_until(lambda call=call: service.batch([call]) == geth.batch([call]))


def test_pending_is_geths(followed: Followed) -> None:
    geth, service, traffic = followed.geth, followed.service, followed.traffic
    first, second = traffic.gap()
    waiting = traffic.send_raw(second)
    found = service.call("eth_getTransactionByHash", waiting)
    assert found == geth.call("eth_getTransactionByHash", waiting)
    assert [found[name] for name in PLACE] == [None] * 4
    assert traffic_receipt(followed, waiting) is None
    traffic.send_raw(first)
    receipt = traffic.receipt(waiting)
    found = service.call("eth_getTransactionByHash", waiting)
    assert found["blockHash"] == receipt["blockHash"]
    assert found == geth.call("eth_getTransactionByHash", waiting)
    wait_until(lambda: waiting in followed.mirror.announced())

    def has_geths_block() -> bool:
        calls = [("eth_getBlockByNumber", "pending", full) for full in (False, True)]
        wanted = [pending(answer["result"]) for answer in geth.batch(calls)]
        return [answer["result"] for answer in service.batch(calls)] == wanted

    wait_until(has_geths_block)


def pending(block: dict[str, Any]) -> dict[str, Any]:
    """Return geth's pending block with null for unknown members, as in docs/sending.md."""
    transactions = [
        each if isinstance(each, str) else {**each, **dict.fromkeys(PLACE)}
        for each in block["transactions"]
    ]
    nulls = dict.fromkeys(("hash", "logsBloom", "nonce", "number"))
    return {**block, **nulls, "transactions": transactions}


def test_block_0_and_the_status_are_right(followed: Followed) -> None:
    geth, service = followed.geth, followed.service
    call = ("eth_getBlockByNumber", "0x0", True)
    assert service.batch([call]) == geth.batch([call])
    status = service.status()
    assert status["following"] in ("following", "catching up")
    assert f"Geth/v{VERSION}" in json.dumps(status)
