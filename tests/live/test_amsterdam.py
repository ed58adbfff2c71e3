"""Amsterdam begins while the service follows geth, and its first blocks are replaced."""

from __future__ import annotations

from typing import Any

from tests.live.comparing import Comparison
from tests.live.conftest import Followed
from tests.live.test_geth import agree
from tests.support.waiting import wait_until


def test_the_first_blocks_are_followed_and_replaced(followed: Followed) -> None:
    geth, service, traffic = followed.geth, followed.service, followed.traffic
    while time_of(followed, "latest") < geth.amsterdam_time:
        traffic.send_round()
        geth.next_block()
    fork = agree(followed)
    while time_of(followed, hex(fork - 1)) >= geth.amsterdam_time:
        fork -= 1
    assert fork > followed.first_head
    Comparison(service, geth).compare(fork - 2, fork)
    assert not has_list(followed, fork - 1)
    assert has_list(followed, fork)
    # The last blocks of Osaka are replaced by blocks of Amsterdam.
    last = fork - 3
    assert last > geth.finalized(), "the machine is too slow"
    before = service.reorganisations()
    geth.call("debug_setHead", hex(last))
    made = wait_until(lambda: service.reorganisations()[len(before) :])[0]
    assert made.fork_number == last
    traffic.forget_nonces()
    sent = [traffic.receipt(each) for each in traffic.send_round()]
    agree(followed)
    assert has_list(followed, last + 1)
    comparison = Comparison(service, geth)
    comparison.compare(last, max(int(each["blockNumber"], 16) for each in sent))
    print(f"Amsterdam began at block {fork}; then {made}\n{comparison.summary()}")


def block(followed: Followed, name: str) -> Any:
    return followed.service.call("eth_getBlockByNumber", name, False)


def has_list(followed: Followed, number: int) -> bool:
    return "blockAccessListHash" in block(followed, hex(number))


def time_of(followed: Followed, name: str) -> int:
    return int(block(followed, name)["timestamp"], 16)
