"""Chain configurations of the network names that fixtures use.

A name is a fork (`Cancun`) or a transition (`ShanghaiToCancunAtTime15k`,
`HomesteadToDaoAt5`, `ArrowGlacierToParisAtDiffC0000`). All forks up to the first one
are active from block 0.
Sources: ethereum/tests docs/blockchain-ref; execution-spec-tests `Fork` classes
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from evm.chain_config import ChainConfig, InvalidChainConfig
from tests.consensus.verdict import UnknownNetwork

NEVER = 2**64
"""A block number and a time that no block reaches."""

KEYS: dict[str, tuple[str, ...]] = {
    "frontier": (),
    "homestead": ("homesteadBlock",),
    "eip150": ("eip150Block",),
    "eip158": ("eip155Block", "eip158Block"),
    "byzantium": ("byzantiumBlock",),
    "constantinople": ("constantinopleBlock",),
    "constantinoplefix": ("petersburgBlock",),
    "istanbul": ("istanbulBlock",),
    "muirglacier": ("muirGlacierBlock",),
    "berlin": ("berlinBlock",),
    "london": ("londonBlock",),
    "arrowglacier": ("arrowGlacierBlock",),
    "grayglacier": ("grayGlacierBlock",),
    "paris": ("terminalTotalDifficulty",),
    "shanghai": ("shanghaiTime",),
    "cancun": ("cancunTime",),
    "prague": ("pragueTime",),
    "osaka": ("osakaTime",),
    "bpo1": ("bpo1Time",),
    "bpo2": ("bpo2Time",),
    "bpo3": ("bpo3Time",),
    "bpo4": ("bpo4Time",),
    "bpo5": ("bpo5Time",),
}
"""Forks in order, each with the keys of geth's genesis config that schedule it."""

ORDER = tuple(KEYS)

SYNONYMS = {
    "tangerinewhistle": "eip150",
    "spuriousdragon": "eip158",
    "petersburg": "constantinoplefix",
    "merge": "paris",
}

_TRANSITION = re.compile(
    r"(?P<old>\w+?)To(?P<new>\w+?)At(?P<unit>Time|Diff)?(?P<place>[0-9A-Fa-f]+k?)"
)


def chain_config(
    network: str, settings: Mapping[str, Any] | None = None
) -> ChainConfig:
    """Return the configuration of a named network.

    settings: the fixture's `config` object: `chainid`, and `blobSchedule` by fork.
    Raises: UnknownNetwork.
    """
    try:
        config = ChainConfig.from_genesis({"config": genesis_config(network, settings)})
    except InvalidChainConfig as error:
        raise UnknownNetwork(f"{network} ({error})") from error
    if config.unknown_forks:
        raise UnknownNetwork(f"{network} ({config.unknown_forks[0].name})")
    return config


def genesis_config(
    network: str, settings: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the `config` of a genesis.json for a named network.

    Raises: UnknownNetwork.
    """
    settings = settings or {}
    schedule = {
        fork.lower(): parameters
        for fork, parameters in (settings.get("blobSchedule") or {}).items()
    }
    return {
        "chainId": settings.get("chainid") or settings.get("chainId") or 1,
        "blobSchedule": schedule,
        **_forks(network),
    }


def _forks(network: str) -> dict[str, Any]:
    """Return the activation of each fork of the network, by its key in the config."""
    if _canonical(network) in KEYS:
        return _through(_canonical(network))
    transition = _TRANSITION.fullmatch(network)
    if transition is None:
        raise UnknownNetwork(network)
    old, new = _canonical(transition["old"]), _canonical(transition["new"])
    place = _place(transition["place"], transition["unit"])
    if old in KEYS and new == "dao":
        return {**_through(old), "daoForkBlock": place, "daoForkSupport": True}
    if old not in KEYS or new not in KEYS or ORDER.index(old) >= ORDER.index(new):
        raise UnknownNetwork(network)
    return {**_between(old, new, place), **_through(old)}


def _through(last: str) -> dict[str, Any]:
    """Schedule every fork up to the last one for block 0."""
    config = _at(ORDER[: ORDER.index(last) + 1], 0)
    if last == "constantinople":
        # Without this key Petersburg begins together with Constantinople.
        config["petersburgBlock"] = NEVER
    return config


def _between(old: str, new: str, place: int) -> dict[str, Any]:
    """Schedule the forks after the old one up to the new one."""
    config = _at(ORDER[ORDER.index(old) + 1 : ORDER.index(new) + 1], place)
    if new == "constantinople":
        config["petersburgBlock"] = NEVER
    return config


def _at(forks: tuple[str, ...], place: int) -> dict[str, Any]:
    return {key: place for fork in forks for key in KEYS[fork]}


def _canonical(name: str) -> str:
    return SYNONYMS.get(name.lower(), name.lower())


def _place(text: str, unit: str | None) -> int:
    """Return a block number, a time in seconds (`15k`) or a difficulty (hex)."""
    if unit == "Diff":
        return int(text, 16)
    digits = text.removesuffix("k")
    if not digits.isdecimal():
        raise UnknownNetwork(f"…At{unit or ''}{text}")
    return int(digits) * (1000 if text.endswith("k") else 1)
