"""Mining rewards before the merge, for display.

`evm.rules.forks` contains the same amounts for execution.

Source: https://eips.ethereum.org/EIPS/eip-649, https://eips.ethereum.org/EIPS/eip-1234
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evm.headers import Header

_ETHER = 10**18
_REWARDS = [("constantinopleBlock", 2 * _ETHER), ("byzantiumBlock", 3 * _ETHER)]
_FIRST_REWARD = 5 * _ETHER


@dataclass(frozen=True, slots=True)
class MiningReward:
    """A reward in newly created ether.

    value: wei.
    is_uncle: whether the recipient is the miner of an uncle instead of the block.
    """

    author: bytes
    value: int
    is_uncle: bool


def mining_rewards(
    header: Header, uncles: Sequence[Header], config: Mapping[str, object]
) -> list[MiningReward]:
    """Return the rewards of a block: for its miner, then for the miners of its uncles.

    config: the `config` of the network's genesis.json.
    """
    if header.difficulty == 0:  # EIP-3675: since the merge
        return []
    reward = _reward_at(header.number, config)
    share = reward + len(uncles) * (reward // 32)
    return [
        MiningReward(header.coinbase, share, is_uncle=False),
        *(
            MiningReward(
                uncle.coinbase,
                (8 + uncle.number - header.number) * reward // 8,
                is_uncle=True,
            )
            for uncle in uncles
        ),
    ]


def _reward_at(number: int, config: Mapping[str, object]) -> int:
    """Return the reward of a block without uncles."""
    for fork, reward in _REWARDS:
        first = config.get(fork)
        if isinstance(first, str):
            first = int(first, 0)
        if isinstance(first, int) and first <= number:
            return reward
    return _FIRST_REWARD
