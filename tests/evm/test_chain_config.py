from dataclasses import replace

import pytest

from evm.chain_config import (
    LADDER,
    MAINNET_DEPOSIT_CONTRACT,
    ChainConfig,
    InvalidChainConfig,
    UnknownFork,
    UnsupportedFork,
)
from evm.rules.fork import BlobParameters
from evm.rules.prices import StatePrices
from tests.evm.frames import new_state

BLOCKS = {
    "homesteadBlock": 1,
    "eip150Block": 2,
    "eip155Block": 3,
    "eip158Block": 3,
    "byzantiumBlock": 4,
    "constantinopleBlock": 5,
    "petersburgBlock": 6,
    "istanbulBlock": 7,
    "muirGlacierBlock": 8,
    "berlinBlock": 9,
    "londonBlock": 10,
    "arrowGlacierBlock": 11,
    "grayGlacierBlock": 12,
}
FRACTION = {"baseFeeUpdateFraction": 7}
TIMES = {"shanghaiTime": 100, "cancunTime": 200, "pragueTime": 300, "osakaTime": 400}


def config(**changes):
    entries = {"chainId": 7, **BLOCKS, "terminalTotalDifficulty": 1000, **TIMES}
    entries.update(changes)
    return ChainConfig.from_genesis({"config": entries})


def test_blocks_before_the_merge_have_the_fork_of_their_number():
    names = [config().fork_at(n, 10**9, False).name for n in range(14)]
    assert names == [*list(LADDER)[:13], "gray_glacier"]


def test_blocks_after_the_merge_have_the_fork_of_their_time():
    at = {t: config().fork_at(13, t, True).name for t in (0, 99, 100, 200, 399, 400)}
    assert at == {
        0: "paris",
        99: "paris",
        100: "shanghai",
        200: "cancun",
        399: "prague",
        400: "osaka",
    }


def test_the_merge_comes_when_the_parent_has_the_terminal_difficulty():
    assert not config().is_merged(999)
    assert config().is_merged(1000)
    assert not config(terminalTotalDifficulty=None).is_merged(10**30)
    passed = config(terminalTotalDifficulty=None, terminalTotalDifficultyPassed=True)
    assert passed.is_merged(0)


def test_schedule_implies_the_merge_from_shanghai_on():
    assert not config().is_surely_merged(13, 99)
    assert config().is_surely_merged(13, 100)


def test_schedule_implies_the_merge_from_the_netsplit_block_on():
    separated = config(mergeNetsplitBlock=20)
    assert not separated.is_surely_merged(19, 0)
    assert separated.is_surely_merged(20, 0)


def test_schedule_implies_a_merge_at_block_0():
    assert config(terminalTotalDifficulty=0).is_surely_merged(0, 0)


def test_a_merge_before_london_is_refused():
    with pytest.raises(InvalidChainConfig, match="before London"):
        config().fork_at(9, 0, True)


def test_of_forks_at_one_block_the_last_stands():
    everything_at_once = dict.fromkeys(BLOCKS, 0)
    assert config(**everything_at_once).fork_at(0, 0, False).name == "gray_glacier"


def test_petersburg_comes_with_constantinople_where_it_is_left_out():
    left_out = config(petersburgBlock=None)
    names = [left_out.fork_at(number, 0, False).name for number in (4, 5, 6, 7)]
    assert names == ["byzantium", "petersburg", "petersburg", "istanbul"]


def test_without_muir_glacier_berlin_keeps_the_bomb_of_constantinople():
    number = 5_500_000
    blocks = {"muirGlacierBlock": None, "londonBlock": number + 1}
    glaciers = {"arrowGlacierBlock": None, "grayGlacierBlock": None}
    fork = config(**blocks, **glaciers).fork_at(number, 0, False)
    assert fork.name == "berlin"
    assert fork.difficulty(10**9, 0, 9, number, False) == LADDER[
        "constantinople"
    ].difficulty(10**9, 0, 9, number, False)
    assert fork.difficulty(10**9, 0, 9, number, False) != LADDER["berlin"].difficulty(
        10**9, 0, 9, number, False
    )


def test_block_zero_has_the_fields_of_the_forks_that_begin_there():
    zero = {**dict.fromkeys(BLOCKS, 0), "terminalTotalDifficulty": 0}
    assert config(**zero, shanghaiTime=0, cancunTime=0).genesis_fork(0).name == "cancun"
    assert config(**zero).genesis_fork(0).name == "gray_glacier"
    assert config().genesis_fork(10**9).name == "frontier"


def test_blob_parameters_come_from_the_schedule_or_else_from_mainnet():
    schedule = {"bpo1": {"target": 7, "max": 12, "baseFeeUpdateFraction": 99}}
    forks = config(bpo1Time=500, bpo2Time=600, blobSchedule=schedule)
    assert forks.fork_at(13, 500, True).blob_parameters == BlobParameters(7, 12, 99)
    bpo2 = forks.fork_at(13, 600, True)
    assert (bpo2.name, bpo2.blob_parameters.max) == ("bpo2", 21)
    assert bpo2.max_transaction_gas == LADDER["osaka"].max_transaction_gas
    assert new_state(bpo2).fork is bpo2


def test_osaka_has_the_blob_parameters_of_prague_unless_the_schedule_has_others():
    prague = {"target": 1, "max": 2} | FRACTION
    own = {"target": 3, "max": 4} | FRACTION
    for schedule, target in (({}, 1), ({"osaka": own}, 3)):
        forks = config(blobSchedule={"prague": prague, **schedule})
        assert forks.fork_at(13, 400, True).blob_parameters.target == target


def test_a_later_parameter_fork_needs_a_schedule():
    lacking = config(bpo3Time=500)
    assert lacking.fork_at(13, 499, True).name == "osaka"
    with pytest.raises(UnsupportedFork, match="bpo3"):
        lacking.fork_at(13, 500, True)
    schedule = {"bpo3": {"target": 20, "max": 30, "baseFeeUpdateFraction": 10**7}}
    fork = config(bpo3Time=500, blobSchedule=schedule).fork_at(13, 500, True)
    assert (fork.name, fork.blob_parameters.target) == ("bpo3", 20)


def test_amsterdam_keeps_the_blobs_of_the_fork_before_and_later_forks_its_rules():
    own = {"target": 1, "max": 2, "baseFeeUpdateFraction": 3}
    schedule = {"amsterdam": own, "bpo3": {"target": 9, "max": 9} | FRACTION}
    forks = config(
        bpo2Time=500,
        amsterdamTime=600,
        bogotaTime=700,
        bpo3Time=800,
        blobSchedule=schedule,
    )
    amsterdam, bogota, bpo3 = (forks.fork_at(13, at, True) for at in (600, 700, 800))
    assert [each.name for each in (amsterdam, bogota, bpo3)] == [
        *("amsterdam", "bogota", "bpo3")
    ]
    assert amsterdam.blob_parameters == forks.fork_at(13, 500, True).blob_parameters
    assert replace(bogota, name="amsterdam") == amsterdam
    assert bpo3.prices == amsterdam.prices
    assert bpo3.blob_parameters == BlobParameters(9, 9, 7)
    assert forks.unknown_forks == ()


def test_prices_of_amsterdam_can_be_replaced():
    given = {
        "costPerStateByte": 1174,
        "state": {"codeByte": 7},
        "store": {"clearRefund": 5},
        "constant": {"CREATE": 6},
        "coldAccount": 2600,
    }
    forks = config(amsterdamTime=500, bogotaTime=600, gasSchedule={"amsterdam": given})
    own, prices = LADDER["amsterdam"].prices, forks.fork_at(13, 500, True).prices
    assert prices == replace(
        own.changed(CREATE=6),
        state=StatePrices(120 * 1174, 64 * 1174, 23 * 1174, 7),
        store=own.store._replace(clear_refund=5),
        cold_account=2600,
    )
    assert forks.fork_at(13, 600, True).prices == prices
    assert forks.until(13, 499) == config(amsterdamTime=500).until(13, 499)
    assert forks.until(13, 500) != config(amsterdamTime=500).until(13, 500)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "gasSchedule.amsterdam: it is not an object"),
        ({"cold_account": 1}, "gasSchedule.amsterdam: cold_account is not known"),
        ({"coldAccount": "1"}, "coldAccount is '1', not a number"),
        ({"coldAccount": -1}, "coldAccount is -1, not between 0 and"),
        ({"coldAccount": 2**32 + 1}, "coldAccount is 4294967297, not between"),
        ({"costPerStateByte": True}, "costPerStateByte is True, not a number"),
        ({"state": 1530}, "state is not an object"),
        ({"state": {"bytes": 1}}, "state.bytes is not known"),
        ({"constant": {"SLOAD": 1.5}}, "constant.SLOAD is 1.5, not a number"),
        ({"constant": {"NONE": 1}}, "constant.NONE is not known"),
    ],
)
def test_other_prices_are_refused_by_name(given, message):
    with pytest.raises(InvalidChainConfig, match=message):
        config(amsterdamTime=500, gasSchedule={"amsterdam": given})


def test_prices_of_other_forks_can_not_be_replaced():
    with pytest.raises(InvalidChainConfig, match="gasSchedule has prices of osaka"):
        config(amsterdamTime=500, gasSchedule={"osaka": {}})


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("clique", "clique consensus"),
        ("bor", "bor consensus"),
        ("enableVerkleAtGenesis", "verkle"),
    ],
)
def test_consensus_that_we_can_not_check_is_refused_by_name(key, name):
    with pytest.raises(UnsupportedFork, match=name) as caught:
        config(**{key: {"period": 1}})
    assert caught.value.name == name
    assert config(**{key: None}).chain_id == 7


@pytest.mark.parametrize(
    ("key", "name"),
    [
        *(("futureTime", "future"), ("verkleTime", "verkle"), ("bpo6Time", "bpo6")),
        ("bogotaTime", "bogota without amsterdam"),
    ],
)
def test_blocks_before_a_time_fork_that_we_lack_can_be_executed(key, name):
    upcoming = config(**{key: 500})
    assert upcoming.unknown_forks == (UnknownFork(name, time=500),)
    assert upcoming.fork_at(13, 499, True).name == "osaka"
    assert upcoming.fork_at(13, 10**9, False).name == "gray_glacier"
    with pytest.raises(UnsupportedFork, match=f"block 13 needs {name}") as caught:
        upcoming.fork_at(13, 500, True)
    assert caught.value.name == name
    assert upcoming.until(13, 499) == config().until(13, 499)
    assert upcoming.until(13, 500) != config().until(13, 500)
    assert config(**{key: None}).unknown_forks == ()


def test_blocks_before_a_block_fork_that_we_lack_can_be_executed():
    upcoming = config(futureBlock=20, laterTime=500)
    assert upcoming.unknown_forks == (
        UnknownFork("future", block=20),
        UnknownFork("later", time=500),
    )
    assert upcoming.fork_at(19, 400, True).name == "osaka"
    with pytest.raises(UnsupportedFork, match="block 20 needs future"):
        upcoming.fork_at(20, 400, True)
    with pytest.raises(InvalidChainConfig, match="futureBlock is 'soon'"):
        config(futureBlock="soon")


def test_a_genesis_with_a_fork_that_we_lack_is_refused():
    everything = {**dict.fromkeys(BLOCKS, 0), "terminalTotalDifficulty": 0}
    upcoming = config(**everything, laterTime=500)
    assert upcoming.genesis_fork(499).name == "osaka"
    with pytest.raises(UnsupportedFork, match="block 0 needs later"):
        upcoming.genesis_fork(500)
    with pytest.raises(UnsupportedFork, match="block 0 needs future"):
        config(futureBlock=0).genesis_fork(0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"berlinBlock": 11}, "londonBlock is at 10, before berlinBlock at 11"),
        ({"cancunTime": 50}, "cancunTime is at 50, before shanghaiTime"),
        ({"byzantiumBlock": None}, "byzantiumBlock is not"),
        ({"cancunTime": None}, "cancunTime is not"),
        ({"eip155Block": 2}, "eip155Block and eip158Block differ"),
        ({"chainId": None}, "no chainId"),
        ({"londonBlock": "soon"}, "londonBlock is 'soon'"),
        ({"londonBlock": -1}, "londonBlock is -1"),
        ({"depositContractAddress": "0x12"}, "depositContractAddress"),
        ({"blobSchedule": {"cancun": {"target": 3}}}, "blobSchedule of cancun"),
        ({"blobSchedule": {"cancun": {"target": 9, "max": 6}}}, "blobSchedule"),
        ({"blobSchedule": {"cancun": 6}}, "blobSchedule of cancun is not an object"),
        ({"blobSchedule": ["cancun"]}, "blobSchedule is not an object"),
    ],
)
def test_a_config_that_contradicts_itself_is_refused(changes, message):
    with pytest.raises(InvalidChainConfig, match=message):
        config(**changes)


def test_a_genesis_without_config_is_refused():
    with pytest.raises(InvalidChainConfig, match="no config"):
        ChainConfig.from_genesis({})


def test_numbers_may_be_text_and_the_deposit_contract_has_a_default():
    assert config(londonBlock="0xa").fork_at(10, 0, False).name == "london"
    assert config().deposit_contract == MAINNET_DEPOSIT_CONTRACT
    own = config(depositContractAddress="0x" + "ab" * 20)
    assert own.deposit_contract == b"\xab" * 20


@pytest.mark.parametrize("supports", [True, False])
def test_headers_state_their_side_of_the_dao_fork_for_ten_blocks(supports):
    dao = config(daoForkBlock=2, daoForkSupport=supports)
    for number in (2, 11):
        assert dao.is_dao_extra_data_valid(number, b"dao-hard-fork") is supports
        assert dao.is_dao_extra_data_valid(number, b"") is not supports
    for number in (1, 12):
        assert dao.is_dao_extra_data_valid(number, b"")
        assert dao.is_dao_extra_data_valid(number, b"dao-hard-fork")
    assert dao.is_dao_fork(2) is supports
    assert not dao.is_dao_fork(3)
    assert len(dao.dao_drained_accounts) == 116


PAST = {"homesteadBlock": 2, "londonBlock": 11, "shanghaiTime": 99, "chainId": 8}
DAO = {"daoForkBlock": 5, "daoForkSupport": True}


@pytest.mark.parametrize(
    "changes",
    [
        *[{key: value} for key, value in PAST.items()],
        {"terminalTotalDifficulty": 999},
        {
            "blobSchedule": {
                "cancun": {"target": 3, "max": 9, "baseFeeUpdateFraction": 9}
            }
        },
        {"daoForkBlock": 6},
        {"daoForkBlock": 21},
        {"daoForkSupport": False},
    ],
)
def test_configs_with_different_past_forks_differ(changes):
    assert config(**DAO).until(20, 250) != config(**DAO | changes).until(20, 250)


@pytest.mark.parametrize(
    "changes", [{"pragueTime": 251}, {"osakaTime": None}, {"bpo1Time": 500}]
)
def test_configs_with_different_future_forks_are_equal(changes):
    assert config(**DAO).until(20, 250) == config(**DAO | changes).until(20, 250)


def test_a_dao_fork_may_be_moved_until_it_has_come():
    later = config(daoForkBlock=6, daoForkSupport=False)
    assert config(**DAO).until(4, 0) == later.until(4, 0)
    assert config(**DAO).until(5, 0) != later.until(5, 0)
    zero = {"daoForkBlock": 0}
    supported = config(**zero, daoForkSupport=True)
    assert supported.until(1, 0) != config(**zero, daoForkSupport=False).until(1, 0)
