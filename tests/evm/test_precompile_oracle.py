"""Native precompiled contracts, compared with py-evm's, which are pure Python.

`make differential-precompiles` compares 10,000 inputs of each.
"""

import random
import time
import timeit

import pytest
from py_arkworks_bls12381 import G1Point, G2Point, Scalar
from zksnake.ecc import EllipticCurve

from evm.precompiles import bls12_381, bn254, hashes, tables
from evm.precompiles.contract import PrecompileError
from samples.precompile_inputs import modexp_input
from tests.evm.frames import call_precompile, new_state, stock_state
from tests.support.precompile_inputs import (
    BLS_ORDER,
    BN_ORDER,
    INPUTS,
    bls_g1,
    bls_g2,
    bn_g1,
)
from tests.support.precompile_oracle import difference

COUNTS = {
    "ecrecover": 150,
    "modexp": 150,
    "bn254_add": 150,
    "bn254_multiply": 30,
    "bn254_pairing": 2,
    "blake2f": 50,
    "bls_g1_add": 100,
    "bls_g1_msm": 6,
    "bls_g2_add": 30,
    "bls_g2_msm": 2,
    "bls_pairing": 2,
    "bls_map_to_g1": 20,
    "bls_map_to_g2": 2,
}
"""Numbers of inputs. They are lower for contracts that take py-evm up to a second."""


@pytest.mark.parametrize("name", INPUTS)
def test_a_contract_agrees_with_py_evm(name):
    choose = random.Random(f"{name} in the tests")
    for _ in range(COUNTS[name]):
        assert difference(name, INPUTS[name](choose)) is None


def test_prices_of_every_fork_are_py_evms():
    """MODEXP is excluded, because its price depends on the input; see test_precompiles."""
    for fork in ("byzantium", "istanbul", "berlin", "cancun", "prague"):
        ours, theirs = new_state(fork), stock_state(fork)
        table = getattr(tables, fork.upper())
        for address in table:
            number = int.from_bytes(address, "big")
            if number == 0x05:
                continue
            data = {0x09: bytes(213)}.get(number, bytes(1000)[: 384 * (number == 0x0F)])
            used = call_precompile(ours, number, data).gas_used
            assert used == call_precompile(theirs, number, data).get_gas_used(), number


@pytest.mark.parametrize("pairs", [1, 2, 3, 127, 128, 129, 200])
def test_sums_of_products_cost_what_py_evm_takes(pairs):
    theirs = stock_state("prague").computation_class.get_precompiles()
    for number, size in ((0x0C, 160), (0x0E, 288)):
        address, data = number.to_bytes(20, "big"), bytes(size * pairs)
        ours = (bls12_381.g1_msm_gas, bls12_381.g2_msm_gas)[number == 0x0E](data)
        meter = Meter(data)
        with pytest.raises(Priced):
            theirs[address](meter)
        assert ours == meter.gas


class Priced(Exception):
    """Raised when a contract has charged its price."""


class Meter:
    def __init__(self, data):
        self.msg = type("Message", (), {"data": data, "data_as_bytes": data})
        self.gas = None

    def consume_gas(self, amount, reason):
        self.gas = amount
        raise Priced


def bn254_pair(first, second):
    curve = EllipticCurve("BN254")
    left, right = curve.G1() * first, curve.G2() * second
    numbers = (left.x, left.y, *reversed(right.x), *reversed(right.y))
    return b"".join(number.to_bytes(32, "big") for number in numbers)


def bls_pair(first, second):
    left = (G1Point() * Scalar(first)).to_xy_bytes_be()
    right = (G2Point() * Scalar(second)).to_xy_bytes_be()
    raw = left + right
    return b"".join(bytes(16) + raw[k : k + 48] for k in range(0, len(raw), 48))


@pytest.mark.parametrize(
    ("pairing", "pair", "order"),
    [
        (bn254.pairing, bn254_pair, BN_ORDER),
        (bls12_381.pairing, bls_pair, BLS_ORDER),
    ],
)
def test_pairings_are_bilinear(pairing, pair, order):
    """e(aP, bQ) · e(cP, dQ) · … is one exactly if ab + cd + … is 0."""
    choose = random.Random(4)
    for _ in range(30):
        factors = [
            (choose.randrange(1, order), choose.randrange(1, order))
            for _ in range(choose.randrange(1, 5))
        ]
        total = sum(a * b for a, b in factors)
        data = b"".join(pair(a, b) for a, b in factors)
        assert pairing(data) == bytes(32)
        assert pairing(data + pair(-total % order, 1)) == bytes(31) + b"\x01"
        assert pairing(data + pair(1, (1 - total) % order)) == bytes(32)


def test_a_sum_of_products_is_the_product_of_the_sum():
    choose = random.Random(5)
    point = bls_g1().inside[7]
    for pairs in (1, 2, 40):
        scalars = [choose.randrange(2**256) for _ in range(pairs)]
        data = b"".join(point + scalar.to_bytes(32, "big") for scalar in scalars)
        total = (sum(scalars) % BLS_ORDER).to_bytes(32, "big")
        assert bls12_381.g1_msm(data) == bls12_381.g1_msm(point + total)


def test_bn254_sums_and_products_agree():
    choose = random.Random(6)
    for _ in range(50):
        point, factor = choose.choice(bn_g1().inside), choose.randrange(1, 2**255)
        one_more = bn254.multiply(point + (factor + 1).to_bytes(32, "big"))
        product = bn254.multiply(point + factor.to_bytes(32, "big"))
        assert bn254.add(product + point) == one_more


def test_blake2f_takes_millions_of_rounds():
    """Its price allows 4,294,967,295 of them in one call."""
    data = (3_000_000).to_bytes(4, "big") + bytes(208) + b"\x01"
    assert hashes.blake2_gas(data) == 3_000_000
    digest = hashes.blake2_compress(data).hex()
    assert digest[:32] == "de0cc0f860aee43a714a2237f3c8668e"  # the result of geth


@pytest.mark.parametrize("function", [bn254.add, bn254.multiply, bn254.pairing])
def test_bn254_rejects_the_prime_itself(function):
    data = bn254.FIELD.to_bytes(32, "big") + bytes(160)
    with pytest.raises(PrecompileError, match=r"invalid fp\.Element encoding"):
        function(data)


SPEED = 3
"""Required Mgas per second of processor time: 6. py-evm reaches 0.1 to 1.8."""

WORST = {
    0x05: modexp_input(b"\xff" * 8, b"\xff" * 1024, b"\xf1" * 8),
    0x06: bn_g1().inside[3] + bn_g1().inside[5],
    0x07: bn_g1().inside[3] + b"\xff" * 32,
    0x08: bn254_pair(2, 3) * 8,
    0x09: (1000).to_bytes(4, "big") + bytes(208) + b"\x01",
    0x0B: bls_g1().inside[3] + bls_g1().inside[5],
    0x0C: bls_g1().inside[3] + b"\xff" * 32,
    0x0D: bls_g2().inside[3] + bls_g2().inside[5],
    0x0E: bls_g2().inside[3] + b"\xff" * 32,
    0x0F: bls_pair(2, 3) * 2,
    0x10: bytes(63) + b"\x07",
    0x11: bytes(127) + b"\x07",
}


@pytest.mark.parametrize("number", WORST)
def test_a_contract_is_fast_enough_to_follow_a_chain(number):
    state, data = new_state("berlin" if number == 0x05 else "prague"), WORST[number]
    gas = call_precompile(state, number, data).gas_used
    best = min(
        timeit.repeat(
            lambda: call_precompile(state, number, data),
            timer=time.process_time,
            number=max(1, 30_000 // gas),
            repeat=5,
        )
    )
    assert gas * max(1, 30_000 // gas) / best / 1e6 > SPEED
