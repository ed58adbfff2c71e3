"""Requests for logs: random filters, all ranges of tags, and malformed filters."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from tests.golden.chains import Chain
from tests.golden.recording import Call
from tests.nodeapi.chain.verifying import verify_chain
from tests.support.log_filters import UNKNOWN_ADDRESS, UNKNOWN_TOPIC, random_filter

GROUPS = ("logs", "malformed filters")

_FILTERS = 300
_TAGS = ("earliest", "latest", "pending")
"""safe and finalized are unknown to this geth; see `differences`."""
_UNUSUAL: tuple[Any, ...] = (
    *(None, {}, {"blockHash": None}, {"blockHash": UNKNOWN_TOPIC}),
    {"address": [UNKNOWN_ADDRESS] * 1000},
    {"topics": [[None, 1]]},
    {"topics": [[UNKNOWN_TOPIC, None, "0x12"]]},
    {"topics": [[UNKNOWN_TOPIC] * 1000]},
)
"""Filters that are well-formed. The id of a filter made from them is random."""
_MALFORMED: tuple[Any, ...] = (
    *("x", 1, True, []),
    *({"blockHash": value} for value in ("0x", "0x12", 1)),
    {"blockHash": UNKNOWN_TOPIC, "fromBlock": "0x1"},
    {"blockHash": UNKNOWN_TOPIC, "toBlock": "latest"},
    *({"fromBlock": value} for value in ("", "1", "0x", "0x01", "0xg", 1, {}, "soon")),
    *({"address": value} for value in ("", "0x", "0x12", "0xzz", 1, {}, [1], [None])),
    *({"address": value} for value in ([UNKNOWN_ADDRESS, "0x1"], [[]], "12", [""])),
    {"address": [UNKNOWN_ADDRESS] * 1001},
    *({"topics": value} for value in ("", 1, {}, [1], [{}], [[1]], [[[]]], [None] * 5)),
    *({"topics": [value]} for value in ("", "0x", "0x12", "0x1", "0xzz", ["0x12"])),
    {"topics": [[UNKNOWN_TOPIC] * 1001]},
    {"address": 1, "topics": 1, "blockHash": 1},
    {"topics": [1], "address": 1},
)


def calls_to(chain: Chain) -> Iterator[Call]:
    """Yield every request to a chain, in an order that is always the same."""
    logs, head = _logs(chain), len(chain.blocks)
    chance = random.Random(head)
    for _ in range(_FILTERS):
        wanted = random_filter(chance, logs)
        if chance.random() < 0.3:
            block = chance.choice(chain.blocks)
            wanted["blockHash"] = "0x" + block.header.hash.hex()
        else:
            first, last = sorted(chance.choices(range(head + 1), k=2))
            wanted |= {"fromBlock": hex(first), "toBlock": hex(last)}
        yield Call("logs", "eth_getLogs", [wanted])
    blocks = [*_TAGS, "0x0", "0x1", hex(head), hex(head + 1), hex(2**63 - 1)]
    for first_block in blocks:
        for last_block in blocks:
            span = {"fromBlock": first_block, "toBlock": last_block}
            yield Call("logs", "eth_getLogs", [{**span, "address": UNKNOWN_ADDRESS}])
    for value in _UNUSUAL:
        yield Call("malformed filters", "eth_getLogs", [value])
    for value in _MALFORMED:
        for method in ("eth_getLogs", "eth_newFilter"):
            yield Call("malformed filters", method, [value])
    for name in (1, {}, [], True, "0x12", "", None):
        for method in ("eth_getFilterChanges", "eth_getFilterLogs"):
            yield Call("malformed filters", method, [name])
        yield Call("malformed filters", "eth_uninstallFilter", [name])


def _logs(chain: Chain) -> list[dict[str, Any]]:
    """Return the addresses and topics of all logs of a chain."""
    verified, _ = verify_chain(chain.genesis, b"".join(chain.raw))
    return [
        {
            "address": "0x" + log.address.hex(),
            "topics": ["0x" + topic.hex() for topic in log.topics],
        }
        for result in verified
        for receipt in result.outcome.receipts
        for log in receipt.logs
    ]
