"""Example arguments for every parameter, to show its form.

They exist on no network. `guide.examples` finds arguments that do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

ADDRESS = "0x3535353535353535353535353535353535353535"
HASH = "0xc094eb6488d5c6cf463aa21b40f9a57c5f0b2b71eb1d80c1bf52bb2bcd6b2b2f"

IDENTITY = "0x0000000000000000000000000000000000000004"
"""A precompiled contract that returns its input, so that a call of it never fails."""

SIGNED = (
    "0xf86c098504a817c800825208943535353535353535353535353535353535353535880de0b6b3a764"
    "00008025a028ef61340bd939bc2195fe537567866003e1a15d3c71ff63e1590620aa636276a067cbe9d"
    "8997f761aecb703304b3800ccf555c9f3dc64214b297fb1966a3b6d83"
)
"""The signed transaction of EIP-155."""

_ZEROS = "00" * 32
_EMPTY_TRIE = "56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421"
_NO_UNCLES = "1dcc4de8dec75d7aab85b567b6ccd41ad312451b948a7413f0a142fd40d49347"

EMPTY_BLOCK = (
    # A list of a header with 15 fields, no transactions and no uncles.
    f"0xf901f8f901f3a0{_ZEROS}a0{_NO_UNCLES}94{'00' * 20}"
    f"a0{_EMPTY_TRIE}a0{_EMPTY_TRIE}a0{_EMPTY_TRIE}b90100{'00' * 256}"
    f"8001831e848080830f424080a0{_ZEROS}88{'00' * 8}c0c0"
)
"""The RLP of a block without transactions."""

_CALL = {"from": ADDRESS, "to": IDENTITY, "gas": "0x186a0", "data": "0x2a"}
_TEN_BLOCKS = {"fromBlock": "0x1", "toBlock": "0xa"}

UNFOUND: Mapping[str, Any] = {
    "filterId": f"0x{'1f' * 16}",
    "kind": "newHeads",
    "rawBlock": EMPTY_BLOCK,
    "rawTransaction": SIGNED,
    "subscription": f"0x{'1f' * 16}",
    "transaction": SIGNED,
    "uncleIndex": "0x0",
}
"""Arguments that can't be found on a network: callers make them, or no block has them."""

ARGUMENTS: Mapping[str, Any] = {
    **UNFOUND,
    "address": ADDRESS,
    "block": "0x1",
    "blockCount": "0x5",
    "blockHash": HASH,
    "blockNumber": 0,
    "call": _CALL,
    "calls": [[_CALL, ["trace"]]],
    "data": "0x",
    "filter": _TEN_BLOCKS,
    "fullTransactions": False,
    "indices": ["0x0"],
    "maxResults": 10,
    "newestBlock": "latest",
    "nonce": 0,
    "options": {"tracer": "callTracer"},
    "pageNumber": 0,
    "pageSize": 25,
    "parentHash": HASH,
    "payload": {"blockStateCalls": [{"calls": [_CALL]}]},
    "payloadAttributes": {
        "timestamp": "0x1",
        "prevRandao": HASH,
        "suggestedFeeRecipient": ADDRESS,
        "withdrawals": [],
        "parentBeaconBlockRoot": HASH,
        "slotNumber": "0x1",
    },
    "positions": {ADDRESS: [f"0x{_ZEROS}"]},
    "rewardPercentiles": [25, 50, 75],
    "startHash": HASH,
    "startKey": "0x",
    "startNumber": 1,
    "storageKeys": ["0x0"],
    "storagePosition": "0x0",
    "traceFilter": _TEN_BLOCKS,
    "traceTypes": ["trace"],
    "transactionHash": HASH,
    "transactionIndex": "0x0",
    "transactionOrCall": HASH,
    "transactionPosition": 0,
    "witnessForm": {"headers": "rlp"},
}
"""Arguments by the name of their parameter. Other parameters are optional."""
