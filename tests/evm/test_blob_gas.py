from dataclasses import replace

import pytest

from evm.blob_gas import blob_base_fee, next_excess_blob_gas
from evm.chain_config import LADDER
from evm.rules.fork import BlobParameters
from evm.transactions import GAS_PER_BLOB
from tests.evm.frames import new_state

BPO2 = replace(
    LADDER["osaka"], name="bpo2", blob_parameters=BlobParameters(14, 21, 11_684_671)
)


@pytest.mark.parametrize(
    ("excess", "fraction", "fee"),
    [
        (0, 3_338_477, 1),
        (2_314_057, 3_338_477, 1),
        (2_314_058, 3_338_477, 2),
        (10 * 1024 * 1024, 3_338_477, 23),
        (10 * 1024 * 1024, 5_007_716, 8),
    ],
)
def test_blob_base_fee_grows_exponentially(excess, fraction, fee):
    assert blob_base_fee(excess, fraction) == fee


@pytest.mark.parametrize(
    ("fork", "excess", "blobs", "expected_blobs"),
    [
        ("cancun", 0, 0, 0),
        ("cancun", 0, 3, 0),
        ("cancun", 0, 4, 1),
        ("cancun", 1, 2, 0),
        ("cancun", 10, 0, 7),
        ("prague", 0, 9, 3),
        ("prague", 10, 0, 4),
    ],
)
def test_excess_is_what_the_target_does_not_absorb(fork, excess, blobs, expected_blobs):
    assert (
        next_excess_blob_gas(
            excess * GAS_PER_BLOB, blobs * GAS_PER_BLOB, 10**12, LADDER[fork]
        )
        == expected_blobs * GAS_PER_BLOB
    )


def test_the_reserve_price_holds_the_excess_up():
    # 8192 × base fee > 131072 × 1 wei, from a base fee of 17 wei on.
    excess, used = 10 * GAS_PER_BLOB, 9 * GAS_PER_BLOB
    osaka = LADDER["osaka"]
    cheap = next_excess_blob_gas(excess, used, 16, osaka)
    dear = next_excess_blob_gas(excess, used, 17, osaka)
    assert cheap == excess + used - 6 * GAS_PER_BLOB
    assert dear == excess + used * 3 // 9
    assert next_excess_blob_gas(excess, 0, 17, osaka) == excess
    assert next_excess_blob_gas(excess, 0, 16, osaka) == 4 * GAS_PER_BLOB


def test_below_the_target_the_excess_is_zero_whatever_the_price():
    assert next_excess_blob_gas(0, 5 * GAS_PER_BLOB, 10**12, LADDER["osaka"]) == 0


def test_a_parameter_fork_counts_with_its_own_numbers():
    used = 21 * GAS_PER_BLOB
    assert next_excess_blob_gas(0, used, 10**9, BPO2) == used * 7 // 21
    assert next_excess_blob_gas(0, used, 1, BPO2) == 7 * GAS_PER_BLOB


def test_a_fork_without_blobs_has_no_excess():
    with pytest.raises(ValueError, match="shanghai"):
        next_excess_blob_gas(0, 0, 7, LADDER["shanghai"])


def test_a_state_of_a_fork_without_blobs_has_no_price_for_them():
    assert new_state("cancun", excess_blob_gas=0).blob_base_fee == 1
    with pytest.raises(ValueError, match="shanghai"):
        _ = new_state("shanghai").blob_base_fee
