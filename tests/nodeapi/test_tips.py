from __future__ import annotations

import random

import pytest

from jsonrpc.text import Number
from nodeapi.fees.history import check_percentiles
from nodeapi.fees.tips import BlockTips, unpack_tips
from nodeapi.methods.eth_fees import block_count, percentiles


def walked(tips: list[tuple[int, int]], gas_used: int, percentile: float) -> int:
    """Return a percentile as geth does, by iterating over the sorted tips."""
    threshold = int(float(gas_used) * percentile / 100)
    index, total = 0, tips[0][1]
    while total < threshold and index < len(tips) - 1:
        index += 1
        total += tips[index][1]
    return tips[index][0]


def made(paid: list[tuple[int, int]], samples: tuple[int, ...] = ()) -> BlockTips:
    """Return the tips of a block. paid: tips and gas used, sorted."""
    total, cumulative = 0, []
    for _, gas in paid:
        total += gas
        cumulative.append(total)
    return BlockTips(samples, cumulative, b"".join(tip.to_bytes(32) for tip, _ in paid))


@pytest.mark.parametrize("seed", range(20))
def test_rewards_are_those_of_walking_up_the_tips(seed: int) -> None:
    rng = random.Random(seed)
    paid = sorted(
        (rng.choice([0, 1, 2**200, rng.randrange(10**12)]), rng.randrange(1, 10**7))
        for _ in range(rng.randrange(1, 60))
    )
    tips = made(paid)
    used = sum(gas for _, gas in paid) + rng.choice([0, 0, 5])
    for percentile in (0, 0.001, 12.5, 50, 99.99, 100, *(rng.uniform(0, 100),) * 5):
        assert tips.reward(used, percentile) == walked(paid, used, percentile)


def test_block_without_transactions_has_no_rewards() -> None:
    assert made([]).reward(0, 50) == 0


@pytest.mark.parametrize("samples", [(), (2,), (2, 3, 2**255)])
def test_tips_are_unpacked_as_they_were_packed(samples: tuple[int, ...]) -> None:
    tips = made([(1, 21_000), (2**255, 2**63)], samples)
    unpacked = unpack_tips(tips.pack())
    assert unpacked.samples == samples
    assert list(unpacked.cumulative_gas) == list(tips.cumulative_gas)
    assert unpacked.tips == tips.tips


@pytest.mark.parametrize(
    ("value", "count"),
    [("", 0), (0, 0), (5, 5), ("5", 5), ("05", 5), ("0x1f", 31), ("0X01", 1)],
)
def test_number_of_blocks_is_hexadecimal_or_decimal(value: object, count: int) -> None:
    assert block_count(value) == count


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("0x", '"0x"'),
        ("-1", '"-1"'),
        (" 1", '" 1"'),
        ("1_0", '"1_0"'),
        ("٣", '"٣"'),
        (1.5, '"1.5"'),
        (True, '"true"'),
        (2**64, '"18446744073709551616"'),
        ("9" * 5000, '"' + "9" * 5000 + '"'),
    ],
)
def test_other_numbers_of_blocks_are_errors(value: object, text: str) -> None:
    with pytest.raises(ValueError, match="invalid hex or decimal integer") as error:
        block_count(value)
    assert str(error.value).endswith(text)


def test_percentiles_are_numbers() -> None:
    assert percentiles([1, 2.5, None]) == (1.0, 2.5, 0.0)
    with pytest.raises(ValueError, match=r"string into Go value of type float64"):
        percentiles(["5"])
    with pytest.raises(ValueError, match=r"object into Go value of type \[\]float64"):
        percentiles({})
    for text in ("1e999", "-1e999"):
        with pytest.raises(ValueError, match=f"unmarshal number {text} into Go value"):
            percentiles([50, Number(text)])


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ([0, 50, 100], None),
        ([], None),
        ([101], "invalid reward percentile: 101.000000"),
        ([-0.5], "invalid reward percentile: -0.500000"),
        ([50, 20], "invalid reward percentile: #0:50.000000 >= #1:20.000000"),
        ([1, 1], "invalid reward percentile: #0:1.000000 >= #1:1.000000"),
        (list(range(101)), "invalid reward percentile: over the query limit 100"),
    ],
)
def test_percentiles_ascend_from_0_to_100(given: list[float], text: str | None) -> None:
    assert check_percentiles(given) == text
