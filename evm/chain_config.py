"""The fork schedule of a network, from the `config` of geth's genesis.json."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from eth_typing import Address

from evm.rules.dao import (
    DAO_DRAINED_ACCOUNTS,
    DAO_EXTRA_DATA,
    DAO_EXTRA_DATA_BLOCKS,
    DAO_REFUND_CONTRACT,
)
from evm.rules.fork import BlobParameters, Fork
from evm.rules.forks import BLOB_PARAMETER_FORKS, FORKS
from evm.rules.overrides import OVERRIDABLE, InvalidPrices, with_prices

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
"""Config key → fork, for forks by block number, in order of activation."""
OPTIONAL_BLOCK_FORKS = frozenset(
    {"petersburgBlock", "muirGlacierBlock", "arrowGlacierBlock", "grayGlacierBlock"}
)
"""Config keys that may be absent. Without Petersburg, its rules apply from
Constantinople on. The other forks only delay the difficulty bomb."""
OTHER_BLOCKS = frozenset({"daoForkBlock", "eip155Block", "mergeNetsplitBlock"})
"""Config keys with a block number that do not activate a fork of their own.
`mergeNetsplitBlock` only separates peers."""

TIME_FORKS = {
    "shanghaiTime": "shanghai",
    "cancunTime": "cancun",
    "pragueTime": "prague",
    "osakaTime": "osaka",
    "bpo1Time": "bpo1",
    "bpo2Time": "bpo2",
    "amsterdamTime": "amsterdam",
    "bogotaTime": "bogota",
    "bpo3Time": "bpo3",
    "bpo4Time": "bpo4",
    "bpo5Time": "bpo5",
}
"""Keys of forks by Unix seconds, in order. bpo1 and later ones are the
blob-parameter-only forks, which keep the rules of the fork before them. So does Bogota,
as in geth 1.17.10."""
BLOB_PARAMETER_TIMES = tuple(f"bpo{n}Time" for n in range(1, 6))
KEEPING_BLOB_PARAMETERS = frozenset({"osaka", "amsterdam", "bogota"})
"""Forks with the blob parameters of the fork before them. In `blobSchedule`, only those
of Osaka are read, which former versions of geth required."""
OPTIONAL_TIME_FORKS = frozenset({*BLOB_PARAMETER_TIMES, "amsterdamTime", "bogotaTime"})
"""Keys that may be absent although a later one is there."""

OTHER_CONSENSUS = ("clique", "aura", "ibft", "ibft2", "qbft", "parlia", "bor")
"""Keys of engines whose blocks we can't check."""

MAINNET_DEPOSIT_CONTRACT = Address(
    bytes.fromhex("00000000219ab540356cbb839cbe05303d7705fa")
)


class UnknownForkName(ValueError):
    """Raised for a name that no fork has. `str` lists the names."""

    def __init__(self, name: str) -> None:
        known = ", ".join(LADDER)
        super().__init__(f'unknown fork "{name}", the known ones are: {known}')


def fork_by_name(name: str) -> Fork:
    """Return mainnet's rules of a fork. Raises: UnknownForkName."""
    fork = LADDER.get(name)
    if fork is None:
        raise UnknownForkName(name)
    return fork


class InvalidChainConfig(ValueError):
    """Raised when a genesis config contradicts itself."""


class UnsupportedFork(InvalidChainConfig):
    """Raised for rules that are not implemented: a fork, or another consensus engine.

    A config may schedule such a fork. The blocks before it can be executed.
    """

    def __init__(
        self,
        name: str,
        subject: str = "the genesis config",
        reason: str = "is not supported",
    ) -> None:
        self.name = name
        super().__init__(f"{subject} needs {name}, which {reason}")


class UnscheduledFork(UnsupportedFork):
    """Raised for a block whose header is of Amsterdam, which the config does not have.

    The config is older than the fork's date. The block may be valid.
    """

    def __init__(self, number: int) -> None:
        reason = "the network's config does not schedule"
        super().__init__("amsterdam", f"block {number}", reason)


@dataclass(frozen=True, slots=True)
class UnknownFork:
    """A fork that a config schedules and that is not implemented.

    block, time: the first block, or the Unix seconds of the activation. The other one is
        None.
    """

    name: str
    block: int | None = None
    time: int | None = None

    def __str__(self) -> str:
        """Return a sentence that names the fork and its activation."""
        place = f"time {self.time}" if self.block is None else f"block {self.block}"
        return f"The fork {self.name} at {place} is not supported by this version."

    def is_active(self, number: int, timestamp: int | None) -> bool:
        """Return whether a block has this fork. timestamp: None before the merge."""
        if self.block is not None:
            return number >= self.block
        return (
            self.time is not None and timestamp is not None and timestamp >= self.time
        )


@dataclass(frozen=True, kw_only=True)
class ChainConfig:
    """A network's chain id, and its fork schedule.

    By number: (first block, fork), beginning with Frontier. By time: (Unix seconds,
    fork), effective after the merge, which activates Paris. Of several forks with the
    same activation, the last one applies.
    """

    chain_id: int
    block_forks: tuple[tuple[int, Fork], ...]
    time_forks: tuple[tuple[int, Fork], ...]
    terminal_total_difficulty: int | None
    """The merge is at the first block whose parent has reached this total difficulty. None
    if there is no merge."""
    deposit_contract: Address
    """The contract whose logs are deposits to the consensus layer."""
    dao_fork_block: int | None
    supports_dao_fork: bool
    unknown_forks: tuple[UnknownFork, ...] = ()
    """Scheduled forks that this version can't execute."""
    merge_netsplit_block: int | None = None
    """A block after the merge at which peers separate, or None."""

    dao_drained_accounts = DAO_DRAINED_ACCOUNTS
    dao_refund_contract = Address(DAO_REFUND_CONTRACT)

    @classmethod
    def from_genesis(cls, genesis: Mapping[str, object]) -> ChainConfig:
        """Parse the fork schedule of a genesis.json.

        A fork that is not implemented is kept in `unknown_forks`.

        Raises: UnsupportedFork for another consensus engine; InvalidChainConfig.
        """
        config = genesis.get("config")
        if not isinstance(config, Mapping):
            raise InvalidChainConfig("the genesis has no config")
        _refuse_other_engines(config)
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
            unknown_forks=_unknown_forks(config),
            merge_netsplit_block=_number(config, "mergeNetsplitBlock"),
        )

    def is_merged(self, parent_total_difficulty: int) -> bool:
        """Return whether a block follows the merge.

        The parent's total difficulty decides.
        """
        terminal = self.terminal_total_difficulty
        return terminal is not None and parent_total_difficulty >= terminal

    def is_surely_merged(self, number: int, timestamp: int) -> bool:
        """Return whether the schedule alone implies that a block follows the merge.

        It does if the merge was at block 0, or from the netsplit block or Shanghai on. In
        other cases the total difficulty decides. timestamp: Unix seconds.

        Source: go-ethereum params/config.go `IsPostMerge`
        """
        if self.terminal_total_difficulty == 0:
            return True
        netsplit = self.merge_netsplit_block
        if netsplit is not None and number >= netsplit:
            return True
        return _active(self.time_forks, timestamp) is not None

    def fork_at(self, number: int, timestamp: int, is_merged: bool) -> Fork:
        """Return the fork of a block. timestamp: Unix seconds.

        Raises: UnsupportedFork; InvalidChainConfig if the merge happened before London.
        """
        self._refuse_unknown_fork(number, timestamp if is_merged else None)
        by_number = _active(self.block_forks, number)
        if by_number is None:
            raise ValueError(f"{number} is no block number")
        if not is_merged:
            return by_number
        if not by_number.has_base_fee:
            raise InvalidChainConfig(
                f"block {number} follows the merge, but is before London"
            )
        return _active(self.time_forks, timestamp) or LADDER["paris"]

    def named_fork(self, name: str) -> Fork:
        """Return the rules of a fork, which need not be active or scheduled.

        A fork that is not scheduled inherits the network's last blob parameters.

        Raises: UnknownForkName.
        """
        for _, scheduled in (*self.time_forks, *self.block_forks):
            if scheduled.name == name:
                return scheduled
        fork, last = fork_by_name(name), self.time_forks[-1:]
        parameters = last[0][1].blob_parameters if last else None
        if fork.has_blobs and parameters is not None:
            return replace(fork, blob_parameters=parameters)
        return fork

    @property
    def schedules_amsterdam(self) -> bool:
        """Whether headers may have the fields of Amsterdam, now or later."""
        return any(fork.has_block_access_list for _, fork in self.time_forks)

    def has_base_fee(self, number: int) -> bool:
        """Return whether the block with a number has a base fee, from London on."""
        fork = _active(self.block_forks, number)
        return fork is not None and fork.has_base_fee

    def genesis_fork(self, timestamp: int) -> Fork:
        """Return the fork of block 0. As in geth, its difficulty is not considered.

        Raises: UnsupportedFork.
        """
        by_number = self.fork_at(0, timestamp, is_merged=False)
        if not by_number.has_base_fee:
            return by_number
        self._refuse_unknown_fork(0, timestamp)
        return _active(self.time_forks, timestamp) or by_number

    def until(self, number: int, timestamp: int) -> tuple[object, ...]:
        """Return the part of the schedule that affects the blocks up to this one.

        Two configs with the same result differ at most in later forks.
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
            [fork for fork in self.unknown_forks if fork.is_active(number, timestamp)],
        )

    def _refuse_unknown_fork(self, number: int, timestamp: int | None) -> None:
        """Raise UnsupportedFork if a block has rules that are not implemented."""
        for fork in self.unknown_forks:
            if fork.is_active(number, timestamp):
                raise UnsupportedFork(fork.name, f"block {number}")

    def is_dao_fork(self, number: int) -> bool:
        """Return whether the DAO's ether moves in this block."""
        return self.supports_dao_fork and number == self.dao_fork_block

    def is_dao_extra_data_valid(self, number: int, extra_data: bytes) -> bool:
        """Return whether a header's extra data is valid under the DAO fork's rule.

        The first blocks from the fork on must contain a fixed text if the network
        supports the fork, and must not contain it otherwise.
        """
        first = self.dao_fork_block
        if first is None or not first <= number < first + DAO_EXTRA_DATA_BLOCKS:
            return True
        return (extra_data == DAO_EXTRA_DATA) == self.supports_dao_fork


def _active(forks: tuple[tuple[int, Fork], ...], position: int) -> Fork | None:
    """Return the last fork that begins at or before a position."""
    index = bisect_right(forks, position, key=lambda entry: entry[0])
    return forks[index - 1][1] if index else None


def _number(config: Mapping[str, object], key: str) -> int | None:
    """Return an unsigned number, in JSON or as text, None when it is absent or null."""
    value = config.get(key)
    if value is None:
        return None
    try:
        number = int(value, 0) if isinstance(value, str) else value
        if not isinstance(number, int) or isinstance(number, bool) or number < 0:
            raise ValueError
    except ValueError:
        raise InvalidChainConfig(f"{key} is {value!r}, not a number") from None
    return number


def _refuse_other_engines(config: Mapping[str, object]) -> None:
    for engine in OTHER_CONSENSUS:
        if config.get(engine) is not None:
            raise UnsupportedFork(f"{engine} consensus")
    if config.get("enableVerkleAtGenesis") or config.get("enableUBTAtGenesis"):
        raise UnsupportedFork("verkle")


def _unknown_forks(config: Mapping[str, object]) -> tuple[UnknownFork, ...]:
    """Return the scheduled forks that are not implemented, those by number first."""
    known = {*BLOCK_FORKS, *OTHER_BLOCKS, *TIME_FORKS}
    forks = []
    for key in sorted(config):
        if key in known and not _lacks_rules(key, config):
            continue
        if key.endswith("Block") and (block := _number(config, key)) is not None:
            forks.append(UnknownFork(key.removesuffix("Block"), block=block))
        if key.endswith("Time") and (time := _number(config, key)) is not None:
            name = key.removesuffix("Time")
            if key == "bogotaTime":
                name += " without amsterdam"
            forks.append(UnknownFork(name, time=time))
    return tuple(sorted(forks, key=lambda fork: (fork.time or -1, fork.block or 0)))


def _lacks_rules(key: str, config: Mapping[str, object]) -> bool:
    """Return whether a config has a fork by time without a part that it needs.

    It is a blob-parameter-only fork without parameters, or Bogota without Amsterdam. For
    that, geth 1.17.10 has Amsterdam's jump table (core/vm/evm.go), but Osaka's rules
    wherever it asks for `rules.IsAmsterdam`: transactions, creations, failed calls, blocks.
    """
    if key == "bogotaTime":
        return _number(config, "amsterdamTime") is None
    name = key.removesuffix("Time")
    if key not in BLOB_PARAMETER_TIMES or name in BLOB_PARAMETER_FORKS:
        return False
    return _blob_schedules(config).get(name) is None


def _blob_schedules(config: Mapping[str, object]) -> Mapping[str, object]:
    schedules = config.get("blobSchedule") or {}
    if not isinstance(schedules, Mapping):
        raise InvalidChainConfig("blobSchedule is not an object")
    return schedules


def _check_order(
    entries: list[tuple[str, int | None]], optional: Collection[str]
) -> None:
    """Check that forks are in ascending order, and that no required fork is missing.

    entries: pairs of key and position, in the required order.
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


def _block_forks(config: Mapping[str, object]) -> tuple[tuple[int, Fork], ...]:
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
            # Berlin does not delay the bomb. The previous fork's delay remains.
            fork = replace(fork, difficulty=forks[-1][1].difficulty)
        forks.append((position, fork))
    return tuple(forks)


def _time_forks(config: Mapping[str, object]) -> tuple[tuple[int, Fork], ...]:
    times = {key: _number(config, key) for key in TIME_FORKS}
    _check_order(list(times.items()), OPTIONAL_TIME_FORKS)
    if times["shanghaiTime"] is not None and _number(config, "londonBlock") is None:
        raise InvalidChainConfig("shanghaiTime is scheduled, but londonBlock is not")
    forks: list[tuple[int, Fork]] = []
    for key, time in times.items():
        if time is None or _lacks_rules(key, config):
            continue
        name = TIME_FORKS[key]
        fork = LADDER[name] if name in LADDER else replace(forks[-1][1], name=name)
        if name in KEEPING_BLOB_PARAMETERS:
            fork = replace(fork, blob_parameters=forks[-1][1].blob_parameters)
        if name == "amsterdam":
            fork = _with_prices(fork, config)
        elif name != "bogota":
            fork = _with_blob_schedule(fork, config)
        forks.append((time, fork))
    return tuple(forks)


def _with_prices(fork: Fork, config: Mapping[str, object]) -> Fork:
    """Return a fork with the prices of the config, otherwise its own ones."""
    schedules = config.get("gasSchedule") or {}
    if not isinstance(schedules, Mapping):
        raise InvalidChainConfig("gasSchedule is not an object")
    if unknown := sorted(schedules.keys() - {OVERRIDABLE}):
        raise InvalidChainConfig(
            f"gasSchedule has prices of {unknown[0]}; only those of {OVERRIDABLE} can be "
            "replaced"
        )
    if fork.name not in schedules:
        return fork
    try:
        return with_prices(fork, schedules[fork.name])
    except InvalidPrices as error:
        raise InvalidChainConfig(f"gasSchedule.{fork.name}: {error}") from error


def _with_blob_schedule(fork: Fork, config: Mapping[str, object]) -> Fork:
    """Return a fork with the blob parameters of the config, otherwise mainnet's."""
    schedule = _blob_schedules(config).get(fork.name)
    if schedule is None:
        if not fork.name.startswith("bpo"):
            return fork
        return replace(fork, blob_parameters=BLOB_PARAMETER_FORKS[fork.name])
    if not isinstance(schedule, Mapping):
        raise InvalidChainConfig(f"blobSchedule of {fork.name} is not an object")
    numbers = [_number(schedule, key) for key in ("target", "max")]
    fraction = _number(schedule, "baseFeeUpdateFraction")
    target, maximum = numbers
    if target is None or maximum is None or not fraction or target > maximum:
        raise InvalidChainConfig(
            f"blobSchedule of {fork.name} needs target, max and baseFeeUpdateFraction, "
            "with a target up to max"
        )
    return replace(fork, blob_parameters=BlobParameters(target, maximum, fraction))


def _deposit_contract(config: Mapping[str, object]) -> Address:
    text = config.get("depositContractAddress")
    if text is None:
        return MAINNET_DEPOSIT_CONTRACT
    try:
        address = bytes.fromhex(str(text).removeprefix("0x"))
    except ValueError:
        address = b""
    if len(address) != 20:
        raise InvalidChainConfig(f"depositContractAddress is {text!r}, not an address")
    return Address(address)
