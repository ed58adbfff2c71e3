"""Well-formed and malformed logs of tokens."""

from __future__ import annotations

from typing import Any

import pytest

from wallets.effects.movements import ETHER, NOWHERE, Allowance, Movement, read_logs
from wallets.effects.words import address_word, number_word, topic

A, B, C, TOKEN = ("0x" + pair * 20 for pair in ("a1", "b2", "c3", "70"))
TRANSFER = "Transfer(address,address,uint256)"


def log(event: str, topics: list[str | int], *words: int, data: str = "") -> Any:
    indexed = [
        "0x" + (address_word(one) if isinstance(one, str) else number_word(one))
        for one in topics
    ]
    body = data or "".join(map(number_word, words))
    return {"address": TOKEN, "topics": [topic(event), *indexed], "data": "0x" + body}


def movements(*logs: Any) -> list[Movement]:
    return read_logs(logs)[0]


def test_transfers_of_each_standard():
    single = "TransferSingle(address,address,address,uint256,uint256)"
    batch = "TransferBatch(address,address,address,uint256[],uint256[])"
    assert movements(
        log(TRANSFER, [A, B], 5),
        log(TRANSFER, [A, B, 7]),
        log(single, [C, A, B], 7, 5),
        log(batch, [C, A, B], 64, 160, 2, 7, 8, 2, 1, 3),
        log("Deposit(address,uint256)", [A], 9),
        log("Withdrawal(address,uint256)", [A], 9),
    ) == [
        Movement(TOKEN, A, B, 5),
        Movement(TOKEN, A, B, 1, 7, is_single=True),
        Movement(TOKEN, A, B, 5, 7),
        Movement(TOKEN, A, B, 1, 7),
        Movement(TOKEN, A, B, 3, 8),
        Movement(TOKEN, NOWHERE, A, 9),
        Movement(TOKEN, A, NOWHERE, 9),
    ]


def test_transfer_that_the_protocol_logs_is_of_ether():
    of_ether = {**log(TRANSFER, [A, B], 5), "address": "0x" + "f" * 39 + "e"}
    assert movements(of_ether) == [Movement(ETHER, A, B, 5)]


def test_later_allowance_replaces_an_earlier_one():
    approval = "Approval(address,address,uint256)"
    logs = [
        log(approval, [A, B], 5),
        log(approval, [A, C], 6),
        log(approval, [A, B], 0),
        log("ApprovalForAll(address,address,bool)", [A, B], 1),
        log(approval, [A, C, 7]),
    ]
    assert read_logs(logs)[1] == [
        Allowance(TOKEN, A, B, 0),
        Allowance(TOKEN, A, C, 6),
        Allowance(TOKEN, A, B, None),
        Allowance(TOKEN, A, C, 1, 7),
    ]


@pytest.mark.parametrize(
    "malformed",
    [
        {"address": TOKEN, "topics": [], "data": "0x"},
        log("Another(address)", [A]),
        log(TRANSFER, [A], 5),
        log(TRANSFER, [A, B], 5, 6),
        log(TRANSFER, [A, B], data="05"),
        log(TRANSFER, [2**160, B], 5),
        log(
            "TransferBatch(address,address,address,uint256[],uint256[])",
            [C, A, B],
            *(64, 2**255, 2, 7, 8),
        ),
        log(
            "TransferBatch(address,address,address,uint256[],uint256[])",
            [C, A, B],
            *(64, 128, 1, 7, 2, 1, 3),
        ),
        log(
            "TransferBatch(address,address,address,uint256[],uint256[])",
            [C, A, B],
            *(65, 128, 1, 7, 1, 3),
        ),
    ],
)
def test_malformed_logs_are_left_out(malformed: Any):
    assert read_logs([malformed, log(TRANSFER, [A, B], 5)]) == (
        [Movement(TOKEN, A, B, 5)],
        [],
    )
