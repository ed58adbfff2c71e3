"""Mining rewards in Parity's format of flat traces.

Source: https://openethereum.github.io/JSONRPC-trace-module
"""

from __future__ import annotations

from evm.rewards import MiningReward
from nodeapi.encoding import data, quantity


def reward_trace(reward: MiningReward, block_hash: bytes, block_number: int) -> bytes:
    """Return the entry of a reward as JSON."""
    return (
        b'{"action":{"author":%b,"rewardType":"%b","value":%b},"blockHash":%b,'
        b'"blockNumber":%d,"result":null,"subtraces":0,"traceAddress":[],'
        b'"transactionHash":null,"transactionPosition":null,"type":"reward"}'
        % (
            data(reward.author),
            b"uncle" if reward.is_uncle else b"block",
            quantity(reward.value),
            data(block_hash),
            block_number,
        )
    )
