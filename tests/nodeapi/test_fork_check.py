"""The comparison of an upstream's eth_config with our fork schedule."""

from __future__ import annotations

from typing import Any

import pytest

from evm.chain_config import ChainConfig
from evm.public import PUBLIC_NETWORKS
from nodeapi.forks.check import (
    MAX_DIFFERENCES,
    ForkCheck,
    InvalidForkConfig,
    check_forks,
)

HOODI = PUBLIC_NETWORKS["hoodi"].genesis()
CONFIG = ChainConfig.from_genesis(HOODI)
START = 1_742_212_800
PRAGUE, OSAKA, BPO1, BPO2 = 1_742_999_832, 1_761_677_592, 1_762_365_720, 1_762_955_544
"""Hoodi's block 0 and forks, in Unix seconds."""

PRECOMPILES = {
    "ECREC": 0x01,
    "SHA256": 0x02,
    "RIPEMD160": 0x03,
    "ID": 0x04,
    "MODEXP": 0x05,
    "BN254_ADD": 0x06,
    "BN254_MUL": 0x07,
    "BN254_PAIRING": 0x08,
    "BLAKE2F": 0x09,
    "KZG_POINT_EVALUATION": 0x0A,
}
PRAGUE_PRECOMPILES = {
    "BLS12_G1ADD": 0x0B,
    "BLS12_G1MSM": 0x0C,
    "BLS12_G2ADD": 0x0D,
    "BLS12_G2MSM": 0x0E,
    "BLS12_PAIRING_CHECK": 0x0F,
    "BLS12_MAP_FP_TO_G1": 0x10,
    "BLS12_MAP_FP2_TO_G2": 0x11,
}
SYSTEM_CONTRACTS = {
    "BEACON_ROOTS_ADDRESS": "0x000f3df6d732807ef1319fb7b8bb8522d0beac02",
    "CONSOLIDATION_REQUEST_PREDEPLOY_ADDRESS": "0x0000bbddc7ce488642fb579f8b00f3a59000"
    "7251",
    "DEPOSIT_CONTRACT_ADDRESS": "0x00000000219ab540356cbb839cbe05303d7705fa",
    "HISTORY_STORAGE_ADDRESS": "0x0000f90827f1c53a10cb7a02335b175320002935",
    "WITHDRAWAL_REQUEST_PREDEPLOY_ADDRESS": "0x00000961ef480eb55e80d19ad83579a64c007002",
}
"""Source: EIP-7910"""


def fork(time: int, blobs: tuple[int, int, int], *more: dict[str, int]) -> Any:
    """Return a fork as geth returns it."""
    numbers = {**PRECOMPILES, **{name: n for each in more for name, n in each.items()}}
    target, maximum, fraction = blobs
    return {
        "activationTime": time,
        "blobSchedule": {
            "baseFeeUpdateFraction": fraction,
            "max": maximum,
            "target": target,
        },
        "chainId": "0x88bb0",
        "forkId": "0x00000000",
        "precompiles": {name: f"0x{number:040x}" for name, number in numbers.items()},
        "systemContracts": dict(SYSTEM_CONTRACTS),
    }


def prague() -> Any:
    return fork(PRAGUE, (6, 9, 5_007_716), PRAGUE_PRECOMPILES)


def osaka(time: int = OSAKA, blobs: tuple[int, int, int] = (6, 9, 5_007_716)) -> Any:
    return fork(time, blobs, PRAGUE_PRECOMPILES, {"P256VERIFY": 0x100})


def bpo1() -> Any:
    return osaka(BPO1, (10, 15, 8_346_193))


def bpo2() -> Any:
    return osaka(BPO2, (14, 21, 11_684_671))


def check(current: Any, following: Any = None, last: Any = None) -> ForkCheck:
    return check_forks(
        {"current": current, "next": following, "last": last}, CONFIG, START
    )


def config_with(**changes: Any) -> ChainConfig:
    return ChainConfig.from_genesis({"config": {**HOODI["config"], **changes}})


def test_upstream_with_our_schedule_has_no_differences() -> None:
    assert check(bpo2()) == ForkCheck()
    assert check(bpo1(), bpo2(), bpo2()) == ForkCheck()
    assert check(prague(), osaka(), bpo2()) == ForkCheck()
    cancun = fork(0, (3, 6, 3_338_477))
    cancun["systemContracts"] = {
        "BEACON_ROOTS_ADDRESS": SYSTEM_CONTRACTS["BEACON_ROOTS_ADDRESS"]
    }
    assert check(cancun, prague(), bpo2()) == ForkCheck()


def test_upstream_with_our_amsterdam_has_no_differences() -> None:
    config = config_with(amsterdamTime=2_000_000_000)
    amsterdam = osaka(2_000_000_000, (14, 21, 11_684_671))
    answer = {"current": bpo2(), "next": amsterdam, "last": amsterdam}
    builders = {
        "BUILDER_DEPOSIT_CONTRACT_ADDRESS": "0x0000bff46984e3725691fa540a8c7589300d8282",
        "BUILDER_EXIT_CONTRACT_ADDRESS": "0x000064d678505ad48f8ccb093bc65613800e8282",
    }
    found = check_forks(answer, config, START)
    assert found.differences == tuple(
        f"In amsterdam the upstream has the system contract {name} at no address, "
        f"this version at {address}."
        for name, address in builders.items()
    )
    amsterdam["systemContracts"] |= builders
    assert check_forks(answer, config, START) == ForkCheck()


def test_upstream_without_the_method_or_before_all_time_forks_tells_nothing() -> None:
    assert check_forks(None, CONFIG, START) == ForkCheck()
    assert check(None) == ForkCheck()


def test_fork_that_only_the_upstream_knows_is_upcoming_and_unsupported() -> None:
    found = check(bpo2(), osaka(2_000_000_000), osaka(2_100_000_000))
    assert found.differences == (
        "The upstream has a fork at 2033-05-18 03:33:20 UTC, which this network's "
        "config does not have.",
        "The upstream has a fork at 2036-07-18 13:20:00 UTC, which this network's "
        "config does not have.",
    )
    assert found.unsupported is not None
    assert (found.unsupported.name, found.unsupported.time) == ("", 2_000_000_000)
    assert str(found.unsupported) == (
        "Blocks from 2033-05-18 03:33:20 UTC on can't be imported, because this "
        "network's config does not schedule their fork. If this version knows the fork, "
        "such as Amsterdam, import a genesis.json that schedules it; otherwise upgrade."
    )


def test_fork_of_our_config_that_we_lack_is_named() -> None:
    config = config_with(futureTime=2_000_000_000)
    upstream = {"current": bpo2(), "next": osaka(2_000_000_000), "last": None}
    for answer in (upstream, None):
        found = check_forks(answer, config, START)
        assert found.differences == ()
        assert found.unsupported is not None
        assert found.unsupported.name == "future"
        assert "The fork future at 2033-05-18" in str(found.unsupported)
    found = check_forks({"current": bpo2()}, config, START)
    assert found.differences == (
        "This network's config has the fork future at 2033-05-18 03:33:20 UTC, "
        "which the upstream does not have.",
    )


def test_fork_that_the_upstream_lacks_is_named() -> None:
    assert check(bpo1()).differences == (
        "This network's config has the fork bpo2 at 2025-11-12 13:52:24 UTC, which the "
        "upstream does not have.",
    )
    assert "the fork bpo1" in " ".join(check(osaka(), bpo2()).differences)
    # An upstream does not name the forks between the next one and the last one.
    assert check(prague(), osaka(), bpo2()).differences == ()
    assert "the fork osaka" in " ".join(check(prague(), bpo1(), bpo2()).differences)


def test_another_chain_is_the_only_difference() -> None:
    other = {**bpo2(), "chainId": "0x1", "activationTime": 9}
    found = check(other)
    assert found.differences == (
        "The upstream has the chain id 1, this network 560048.",
    )
    assert found.unsupported is None


def test_parameters_and_contracts_of_a_fork_are_compared() -> None:
    other = bpo2()
    other["blobSchedule"]["max"] = 22
    other["precompiles"]["NEWHASH"] = f"0x{0x123:040x}"
    del other["precompiles"]["P256VERIFY"]
    other["systemContracts"]["DEPOSIT_CONTRACT_ADDRESS"] = "0x" + "11" * 20
    del other["systemContracts"]["HISTORY_STORAGE_ADDRESS"]
    assert check(other).differences == (
        "The blob schedule of bpo2 differs: the upstream has target 14, maximum 22, "
        "update fraction 11684671, this network target 14, maximum 21, update fraction "
        "11684671.",
        "In bpo2 the upstream has the precompiled contract NEWHASH at "
        f"0x{0x123:040x}, which this version does not have.",
        f"In bpo2 the upstream lacks the precompiled contract at 0x{0x100:040x}.",
        "In bpo2 the upstream has the system contract DEPOSIT_CONTRACT_ADDRESS at 0x"
        + "11" * 20
        + ", this version at 0x00000000219ab540356cbb839cbe05303d7705fa.",
        "In bpo2 the upstream has the system contract HISTORY_STORAGE_ADDRESS at no "
        "address, this version at 0x0000f90827f1c53a10cb7a02335b175320002935.",
    )


def test_sentences_are_limited() -> None:
    other = bpo2()
    many = {f"NEW{n}": f"0x{0x200 + n:040x}" for n in range(MAX_DIFFERENCES + 5)}
    other["precompiles"] |= many
    found = check(other).differences
    assert len(found) == MAX_DIFFERENCES + 1
    assert found[-1] == "There are 5 more differences."


@pytest.mark.parametrize(
    "answer",
    [
        5,
        [],
        {"current": 5},
        {"current": {}},
        {"current": {**bpo2(), "activationTime": "soon"}},
        {"current": {**bpo2(), "activationTime": -1}},
        {"current": {**bpo2(), "activationTime": True}},
        {"current": {**bpo2(), "activationTime": 2**64}},
        {"current": {**bpo2(), "chainId": None}},
        {"current": {**bpo2(), "blobSchedule": {"target": 1}}},
        {"current": {**bpo2(), "precompiles": {"X": "0x1"}}},
        {"current": {**bpo2(), "precompiles": {"<b>": "0x" + "11" * 20}}},
        {"current": {**bpo2(), "systemContracts": {"X\u202e": "0x" + "11" * 20}}},
        {"current": bpo2(), "next": "soon"},
    ],
)
def test_malformed_answers_are_refused(answer: Any) -> None:
    with pytest.raises(InvalidForkConfig):
        check_forks(answer, CONFIG, START)


def test_times_of_far_years_are_no_dates() -> None:
    found = check(bpo2(), osaka(2**64 - 1))
    assert f"the time {2**64 - 1}" in str(found.unsupported)
