"""When a network's forks happen, read from the `config` of geth's genesis.json."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from eth_typing import Address

from nodeapi.evm.forks import (
    BLOB_PARAMETER_FORKS,
    DAO_DRAINED_ACCOUNTS,
    DAO_EXTRA_DATA,
    DAO_EXTRA_DATA_BLOCKS,
    DAO_REFUND_CONTRACT,
    FORKS,
    BlobParameters,
    Fork,
)

LADDER = {fork.name: fork for fork in FORKS}

BLOCK_FORKS = {
    "homesteadBlock": "homestead",
    "eip150Block": "tangerine_whistle",
    "eip158Block": "spurious_dragon",
    "byzantiumBlock": "byzantium",
    "constantinopleBlock": "constantinople",
    "petersburgBlock": "petersburg",
    "istanbulBlock": "istanbul",
    "muirGlacierBlock": "muir_glacier",
    "berlinBlock": "berlin",
    "londonBlock": "london",
    "arrowGlacierBlock": "arrow_glacier",
    "grayGlacierBlock": "gray_glacier",
}
"""Keys of forks by block number, in order, with what they begin."""
OPTIONAL_BLOCK_FORKS = frozenset(
    {"petersburgBlock", "muirGlacierBlock", "arrowGlacierBlock", "grayGlacierBlock"}
)
"""A network may leave these out: without Petersburg its rules come with
Constantinople, the others only put the difficulty bomb off."""
OTHER_BLOCKS = frozenset({"daoForkBlock", "eip155Block", "mergeNetsplitBlock"})
"""Keys that name a block and begin no fork of their own. The last separates peers."""

TIME_FORKS = {
    "shanghaiTime": "shanghai",
    "cancunTime": "cancun",
    "pragueTime": "prague",
    "osakaTime": "osaka",
}
"""Keys of forks by Unix seconds, in order."""
BLOB_PARAMETER_TIMES = tuple(f"bpo{n}Time" for n in range(1, 6))

OTHER_CONSENSUS = ("clique", "aura", "ibft", "ibft2", "qbft", "parlia", "bor")
"""Keys of engines whose blocks we can't check."""

MAINNET_DEPOSIT_CONTRACT = Address(
    bytes.fromhex("00000000219ab540356cbb839cbe05303d7705fa")
)


class InvalidChainConfig(ValueError):
    """Raised when a genesis config contradicts itself."""


class UnsupportedFork(InvalidChainConfig):
    """Raised when a config schedules what we don't know how to execute."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"the genesis config schedules {name}, which is not supported")


@dataclass(frozen=True, kw_only=True)
class ChainConfig:
    """A network's number, and its forks in order.

    By number: (first block, fork), Frontier first. By time: (Unix seconds, fork); they
    count from the merge on, which begins Paris. Of several forks that begin at once
    the last stands.
    """

    chain_id: int
    block_forks: tuple[tuple[int, Fork], ...]
    time_forks: tuple[tuple[int, Fork], ...]
    terminal_total_difficulty: int | None
    """The merge is at the first block whose parent has reached it; None: never."""
    deposit_contract: Address
    """Whose logs are deposits to the consensus layer."""
    dao_fork_block: int | None
    supports_dao_fork: bool

    dao_drained_accounts = DAO_DRAINED_ACCOUNTS
    dao_refund_contract = Address(DAO_REFUND_CONTRACT)

    @classmethod
    def from_genesis(cls, genesis: Mapping[str, Any]) -> ChainConfig:
        """Read the forks of a genesis.json.

        Raises: UnsupportedFork, InvalidChainConfig.
        """
        config = genesis.get("config")
        if not isinstance(config, Mapping):
            raise InvalidChainConfig("the genesis has no config")
        _refuse_the_unknown(config)
        total_difficulty = _number(config, "terminalTotalDifficulty")
        if total_difficulty is None and config.get("terminalTotalDifficultyPassed"):
            total_difficulty = 0
        chain_id = _number(config, "chainId")
        if chain_id is None:
            raise InvalidChainConfig("the genesis config has no chainId")
        return cls(
            chain_id=chain_id,
            block_forks=_block_forks(config),
            time_forks=_time_forks(config),
            terminal_total_difficulty=total_difficulty,
            deposit_contract=_deposit_contract(config),
            dao_fork_block=_number(config, "daoForkBlock"),
            supports_dao_fork=bool(config.get("daoForkSupport")),
        )

    def is_merged(self, parent_total_difficulty: int) -> bool:
        """Return whether the child of a block with that total comes after the merge."""
        terminal = self.terminal_total_difficulty
        return terminal is not None and parent_total_difficulty >= terminal

    def fork_at(self, number: int, timestamp: int, is_merged: bool) -> Fork:
        """Return the fork whose rules a block has; timestamp in Unix seconds.

        Raises: InvalidChainConfig when the merge came before London.
        """
        by_number = _active(self.block_forks, number)
        if by_number is None:
            raise ValueError(f"{number} is no block number")
        if not is_merged:
            return by_number
        if not by_number.has_base_fee:
            raise InvalidChainConfig(f"block {number} is merged, but before London")
        return _active(self.time_forks, timestamp) or LADDER["paris"]

    def genesis_fork(self, timestamp: int) -> Fork:
        """Return the fork whose fields block 0 has: geth looks at no difficulty there."""
        by_number = self.fork_at(0, timestamp, is_merged=False)
        if not by_number.has_base_fee:
            return by_number
        return _active(self.time_forks, timestamp) or by_number

    def until(self, number: int, timestamp: int) -> tuple[Any, ...]:
        """Return what has decided how blocks were executed up to this one.

        Two configs that agree in it may differ in forks that are yet to come.
        """
        dao_fork = self.dao_fork_block
        has_dao_fork = dao_fork is not None and dao_fork <= number
        return (
            self.chain_id,
            [fork for fork in self.block_forks if fork[0] <= number],
            [fork for fork in self.time_forks if fork[0] <= timestamp],
            self.terminal_total_difficulty,
            self.deposit_contract,
            (dao_fork, self.supports_dao_fork) if has_dao_fork else None,
        )

    def is_dao_fork(self, number: int) -> bool:
        """Return whether the DAO's ether moves in this block."""
        return self.supports_dao_fork and number == self.dao_fork_block

    def is_dao_extra_data_valid(self, number: int, extra_data: bytes) -> bool:
        """Return whether a header states its side of the DAO fork, where it must."""
        first = self.dao_fork_block
        if first is None or not first <= number < first + DAO_EXTRA_DATA_BLOCKS:
            return True
        return (extra_data == DAO_EXTRA_DATA) == self.supports_dao_fork


def _active(forks: tuple[tuple[int, Fork], ...], position: int) -> Fork | None:
    """Return the last fork that begins at or before a position."""
    index = bisect_right(forks, position, key=lambda entry: entry[0])
    return forks[index - 1][1] if index else None


def _number(config: Mapping[str, Any], key: str) -> int | None:
    """Return an unsigned number, in JSON or as text, None when it is absent or null."""
    value = config.get(key)
    if value is None:
        return None
    try:
        if isinstance(value, bool | float):
            raise ValueError
        number = int(value, 0) if isinstance(value, str) else int(value)
        if number < 0:
            raise ValueError
    except (TypeError, ValueError):
        raise InvalidChainConfig(f"{key} is {value!r}, not a number") from None
    return number


def _refuse_the_unknown(config: Mapping[str, Any]) -> None:
    for engine in OTHER_CONSENSUS:
        if config.get(engine) is not None:
            raise UnsupportedFork(f"{engine} consensus")
    known = {*BLOCK_FORKS, *OTHER_BLOCKS, *TIME_FORKS, *BLOB_PARAMETER_TIMES}
    for key, value in config.items():
        if key.endswith(("Block", "Time")) and key not in known and value is not None:
            raise UnsupportedFork(key.removesuffix("Time").removesuffix("Block"))
    if config.get("enableVerkleAtGenesis") or config.get("enableUBTAtGenesis"):
        raise UnsupportedFork("verkle")


def _check_order(entries: list[tuple[str, int | None]], optional: Any) -> None:
    """Check that each fork comes no earlier than the one before, and none is missing.

    entries: key and position, in the order in which the forks must follow.
    """
    previous_key, previous = "the genesis", 0
    missing = None
    for key, position in entries:
        if position is None:
            missing = missing if key in optional else missing or key
            continue
        if missing is not None:
            raise InvalidChainConfig(f"{key} is scheduled, but {missing} is not")
        if position < previous:
            raise InvalidChainConfig(
                f"{key} is at {position}, before {previous_key} at {previous}"
            )
        previous_key, previous = key, position


def _block_forks(config: Mapping[str, Any]) -> tuple[tuple[int, Fork], ...]:
    positions = {key: _number(config, key) for key in BLOCK_FORKS}
    _check_order(list(positions.items()), OPTIONAL_BLOCK_FORKS)
    if _number(config, "eip155Block") != positions["eip158Block"]:
        raise InvalidChainConfig("eip155Block and eip158Block differ")
    forks = [(0, LADDER["frontier"])]
    for key, position in positions.items():
        if position is None:
            continue
        fork = LADDER[BLOCK_FORKS[key]]
        if key == "constantinopleBlock" and positions["petersburgBlock"] is None:
            fork = LADDER["petersburg"]
        if key == "berlinBlock" and positions["muirGlacierBlock"] is None:
            # Berlin leaves the bomb alone: it is still the one of Constantinople.
            fork = replace(fork, difficulty=forks[-1][1].difficulty)
        forks.append((position, fork))
    return tuple(forks)


def _time_forks(config: Mapping[str, Any]) -> tuple[tuple[int, Fork], ...]:
    keys = (*TIME_FORKS, *BLOB_PARAMETER_TIMES)
    times = {key: _number(config, key) for key in keys}
    _check_order(list(times.items()), BLOB_PARAMETER_TIMES)
    if times["shanghaiTime"] is not None and _number(config, "londonBlock") is None:
        raise InvalidChainConfig("shanghaiTime is scheduled, but londonBlock is not")
    forks = []
    for key, time in times.items():
        if time is None:
            continue
        name = TIME_FORKS.get(key)
        fork = replace(LADDER["osaka"], name=key[:4]) if name is None else LADDER[name]
        forks.append((time, _with_blob_schedule(fork, config)))
    return tuple(forks)


def _with_blob_schedule(fork: Fork, config: Mapping[str, Any]) -> Fork:
    """Return a fork with the blob parameters that the config, or else mainnet, gives.

    Raises: UnsupportedFork for a blob-parameter fork that neither of them knows.
    """
    schedules = config.get("blobSchedule") or {}
    if not isinstance(schedules, Mapping):
        raise InvalidChainConfig("blobSchedule is no object")
    schedule = schedules.get(fork.name)
    if schedule is None:
        if not fork.name.startswith("bpo"):
            return fork
        if fork.name not in BLOB_PARAMETER_FORKS:
            raise UnsupportedFork(f"{fork.name} without a blobSchedule")
        return replace(fork, blob_parameters=BLOB_PARAMETER_FORKS[fork.name])
    if not isinstance(schedule, Mapping):
        raise InvalidChainConfig(f"blobSchedule of {fork.name} is no object")
    numbers = [_number(schedule, key) for key in ("target", "max")]
    fraction = _number(schedule, "baseFeeUpdateFraction")
    target, maximum = numbers
    if target is None or maximum is None or not fraction or target > maximum:
        raise InvalidChainConfig(f"blobSchedule of {fork.name} is incomplete or wrong")
    return replace(fork, blob_parameters=BlobParameters(target, maximum, fraction))


def _deposit_contract(config: Mapping[str, Any]) -> Address:
    text = config.get("depositContractAddress")
    if text is None:
        return MAINNET_DEPOSIT_CONTRACT
    try:
        address = bytes.fromhex(str(text).removeprefix("0x"))
    except ValueError:
        address = b""
    if len(address) != 20:
        raise InvalidChainConfig(f"depositContractAddress is {text!r}")
    return Address(address)
