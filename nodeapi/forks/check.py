"""Comparison of an upstream's fork schedule with ours.

Source: https://eips.ethereum.org/EIPS/eip-7910 (eth_config)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from evm.chain_config import ChainConfig
from evm.rules.fork import Fork
from nodeapi.forks.config import system_contracts

MAX_DIFFERENCES = 20
"""Maximum number of sentences of one comparison."""

_PARTS = ("current", "next", "last")
"""Members of the result: the active fork, the next one, and the last one scheduled."""


class InvalidForkConfig(ValueError):
    """Raised when a result of eth_config does not have the form of EIP-7910."""


@dataclass(frozen=True, slots=True)
class UpcomingFork:
    """The first fork that this version can't execute.

    name: "" if only its time is known, from an upstream. time: Unix seconds of its
        activation.
    """

    name: str
    time: int

    def __str__(self) -> str:
        """Return a sentence with the activation's date, and the remedy."""
        if self.name:
            return (
                f"The fork {self.name} at {date(self.time)} is not supported: later "
                "blocks can't be imported by this version."
            )
        return (
            f"Blocks from {date(self.time)} on can't be imported, because this network's "
            "config does not schedule their fork. If this version knows the fork, such as "
            "Amsterdam, import a genesis.json that schedules it; otherwise upgrade."
        )


@dataclass(frozen=True, slots=True)
class ForkCheck:
    """The result of a comparison.

    differences: a sentence for each difference between the upstream and us.
    unsupported: the first fork that we can't execute, None if none is known.
    """

    differences: tuple[str, ...] = ()
    unsupported: UpcomingFork | None = None

    @property
    def sentences(self) -> tuple[str, ...]:
        """The differences, and a sentence about the unsupported fork."""
        unsupported = self.unsupported
        return self.differences + (() if unsupported is None else (str(unsupported),))


@dataclass(frozen=True, slots=True)
class _Scheduled:
    """A fork of the upstream. blobs: target, maximum, update fraction."""

    time: int
    chain_id: int
    blobs: tuple[int, int, int] | None
    precompiles: Mapping[bytes, str]
    system_contracts: Mapping[str, bytes]


def check_forks(answer: Any, config: ChainConfig, genesis_time: int = 0) -> ForkCheck:
    """Compare an upstream's eth_config with our fork schedule.

    answer: the result of eth_config, decoded from JSON. If the upstream lacks the method,
        it is None, and only our own schedule is checked.
    genesis_time: Unix seconds of block 0. Forks up to it are active from block 0 on,
        and EIP-7910 reports them with time 0.

    Raises: InvalidForkConfig.
    """
    scheduled = [] if answer is None else _scheduled(answer)
    unknown = {f.time: f.name for f in config.unknown_forks if f.time is not None}
    for each in scheduled:
        if each.chain_id != config.chain_id:
            text = (
                f"The upstream has the chain id {each.chain_id}, "
                f"this network {config.chain_id}."
            )
            return ForkCheck((text,), _first_unsupported(unknown))
    own = {
        0 if time <= genesis_time else time: fork for time, fork in config.time_forks
    }
    names = {**unknown, **{time: fork.name for time, fork in own.items()}}
    differences = [
        *(text for each in scheduled for text in _compare(each, own, names, config)),
        *_missing([each.time for each in scheduled], names),
    ]
    shown = differences[:MAX_DIFFERENCES]
    if len(differences) > len(shown):
        shown.append(f"There are {len(differences) - len(shown)} more differences.")
    last = max(own, default=0)
    unnamed = {f.time: "" for f in scheduled if f.time > last and f.time not in unknown}
    return ForkCheck(tuple(shown), _first_unsupported({**unnamed, **unknown}))


def _first_unsupported(forks: Mapping[int, str]) -> UpcomingFork | None:
    """Return the fork with the lowest time, or None. forks: time → name."""
    if not forks:
        return None
    time = min(forks)
    return UpcomingFork(forks[time], time)


def _compare(
    each: _Scheduled,
    own: Mapping[int, Fork],
    names: Mapping[int, str],
    config: ChainConfig,
) -> Iterator[str]:
    """Yield the differences of one fork of the upstream."""
    if each.time in own:
        yield from _fork_differences(each, own[each.time], config)
    elif each.time not in names:
        yield (
            f"The upstream has a fork at {date(each.time)}, which this network's "
            "config does not have."
        )


def _missing(times: list[int], names: Mapping[int, str]) -> Iterator[str]:
    """Yield a sentence for each of our forks that the upstream should report but does not.

    times: the times of the upstream's active fork, next fork and last fork, as far as they
        exist. The upstream does not report forks between the last two.
    """
    for time, name in sorted(names.items()):
        is_named = time in times or not times or time < times[0]
        is_between = len(times) > 2 and times[1] < time < times[2]
        if not is_named and not is_between:
            yield (
                f"This network's config has the fork {name} at {date(time)}, which "
                "the upstream does not have."
            )


def _fork_differences(
    each: _Scheduled, fork: Fork, config: ChainConfig
) -> Iterator[str]:
    """Yield the differences of a fork that is in both schedules."""
    ours, blobs = fork.blob_parameters, None
    if ours is not None:
        blobs = ours.target, ours.max, ours.base_fee_update_fraction
    if each.blobs != blobs:
        yield (
            f"The blob schedule of {fork.name} differs: the upstream has "
            f"{_blobs(each.blobs)}, this network {_blobs(blobs)}."
        )
    for address, name in each.precompiles.items():
        if address not in fork.precompiles:
            yield (
                f"In {fork.name} the upstream has the precompiled contract {name} at "
                f"0x{address.hex()}, which this version does not have."
            )
    for address in sorted(fork.precompiles.keys() - each.precompiles.keys()):
        yield (
            f"In {fork.name} the upstream lacks the precompiled contract at "
            f"0x{address.hex()}."
        )
    contracts = system_contracts(fork, config)
    for name in sorted(contracts.keys() | each.system_contracts.keys()):
        found, wanted = each.system_contracts.get(name), contracts.get(name)
        if found != wanted:
            yield (
                f"In {fork.name} the upstream has the system contract {name} at "
                f"{_address(found)}, this version at {_address(wanted)}."
            )


# Reading the upstream's answer


def _scheduled(answer: Any) -> list[_Scheduled]:
    """Return the forks of an answer, each once, in order of time.

    The list is empty if no fork by time is active at the upstream's head, as before
    Shanghai.
    """
    if not isinstance(answer, Mapping):
        raise InvalidForkConfig("eth_config is not an object")
    if answer.get("current") is None:
        return []
    found: dict[int, _Scheduled] = {}
    for part in _PARTS:
        if answer.get(part) is not None:
            fork = _read_fork(part, answer[part])
            found.setdefault(fork.time, fork)
    return [found[time] for time in sorted(found)]


def _read_fork(part: str, value: Any) -> _Scheduled:
    try:
        blobs = value.get("blobSchedule")
        return _Scheduled(
            time=_natural(value["activationTime"]),
            chain_id=_natural(value["chainId"]),
            blobs=None
            if blobs is None
            else (
                _natural(blobs["target"]),
                _natural(blobs["max"]),
                _natural(blobs["baseFeeUpdateFraction"]),
            ),
            precompiles={
                _read_address(address): _name(name)
                for name, address in value["precompiles"].items()
            },
            system_contracts={
                _name(name): _read_address(address)
                for name, address in value["systemContracts"].items()
            },
        )
    except (AttributeError, KeyError, TypeError, ValueError):
        raise InvalidForkConfig(f"eth_config has a malformed {part} fork") from None


def _natural(value: Any) -> int:
    """Decode a JSON number or a hexadecimal quantity."""
    number = int(value, 16) if isinstance(value, str) else value
    if isinstance(number, bool) or not isinstance(number, int):
        raise TypeError
    if not 0 <= number < 2**64:
        raise ValueError
    return number


def _name(value: str) -> str:
    """Return a contract's name for use in a sentence."""
    if len(value) > 64 or not (value.isascii() and value.replace("_", "").isalnum()):
        raise ValueError
    return value


def _read_address(value: str) -> bytes:
    address = bytes.fromhex(value.removeprefix("0x"))
    if len(address) != 20:
        raise ValueError
    return address


# Words


def date(time: int) -> str:
    """Return Unix seconds as a date, or as a number if the time has no date."""
    if time == 0:
        return "block 0"
    if time > 253_402_300_799:  # the end of the year 9999
        return f"the time {time}"
    return f"{datetime.fromtimestamp(time, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _blobs(blobs: tuple[int, int, int] | None) -> str:
    if blobs is None:
        return "none"
    return f"target {blobs[0]}, maximum {blobs[1]}, update fraction {blobs[2]}"


def _address(address: bytes | None) -> str:
    return "no address" if address is None else f"0x{address.hex()}"
