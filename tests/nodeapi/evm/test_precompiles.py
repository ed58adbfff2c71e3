import random

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.hashes import SHA256
from eth.exceptions import OutOfGas, VMError

from nodeapi.evm.precompiles import (
    P256_ORDER,
    berlin_modexp_gas,
    byzantium_modexp_gas,
    is_p256_signature,
    osaka_modexp_gas,
)
from tests.nodeapi.evm.frames import call_precompile, new_state, stock_state

FIELD = 0xFFFFFFFF00000001000000000000000000000000FFFFFFFFFFFFFFFFFFFFFFFF


def word(number):
    return number.to_bytes(32, "big")


def modexp_input(base, exponent, modulus):
    return b"".join(word(len(part)) for part in (base, exponent, modulus)) + (
        base + exponent + modulus
    )


def sized_input(length, exponent):
    return modexp_input(b"\xff" * length, exponent, b"\xf1" * length)


@pytest.mark.parametrize(
    ("length", "exponent", "berlin", "osaka"),
    [
        (64, b"\x02", 200, 500),
        (64, b"\x03", 200, 500),
        (64, b"\x01\x00\x01", 341, 2048),
        (128, b"\x02", 200, 512),
        (128, b"\x01\x00\x01", 1365, 8192),
        (256, b"\x02", 341, 2048),
        (256, b"\x01\x00\x01", 5461, 32_768),
        (512, b"\x02", 1365, 8192),
        (512, b"\x01\x00\x01", 21_845, 131_072),
        (1024, b"\x02", 5461, 32_768),
        (1024, b"\x01\x00\x01", 87_381, 524_288),
    ],
)
def test_modexp_costs_what_the_proposals_list(length, exponent, berlin, osaka):
    data = sized_input(length, exponent)
    assert berlin_modexp_gas(data) == berlin
    assert osaka_modexp_gas(data) == osaka


def test_modexp_prices_short_numbers_and_long_exponents():
    assert osaka_modexp_gas(sized_input(32, b"\xff" * 32)) == 16 * 255
    assert osaka_modexp_gas(sized_input(33, b"\xff" * 33)) == 2 * 25 * (255 + 16)
    assert berlin_modexp_gas(sized_input(32, b"\xff" * 33)) == 16 * (255 + 8) // 3
    assert byzantium_modexp_gas(sized_input(32, b"\x03")) == 1024 // 20


def test_modexp_agrees_with_py_evm_where_that_one_is_right():
    choose = random.Random(3)
    for fork in ("byzantium", "berlin", "prague"):
        for _ in range(60):
            base, exponent, modulus = (
                choose.randbytes(choose.randrange(1, 70)) for _ in range(3)
            )
            data = modexp_input(base, exponent, modulus)[: choose.randrange(90, 400)]
            ours = call_precompile(new_state(fork), 5, data)
            theirs = call_precompile(stock_state(fork), 5, data)
            assert ours.get_gas_remaining() == theirs.get_gas_remaining()
            assert ours.output == theirs.output


@pytest.mark.parametrize(
    ("base", "exponent", "modulus", "output"),
    [
        (b"", b"", b"\x05", b"\x01"),
        (b"", b"\x00", b"\x05", b"\x01"),
        (b"", b"\x02", b"\x05", b"\x00"),
        (b"\x07", b"", b"\x05", b"\x01"),
        (b"\x07", b"\x02", b"", b""),
        (b"\x07", b"\x02", b"\x00", b"\x00"),
        (b"\x07", b"\x02", b"\x00\x01", b"\x00\x00"),
        (b"", b"", b"", b""),
    ],
)
def test_modexp_of_empty_numbers(base, exponent, modulus, output):
    for fork in ("byzantium", "prague", "osaka"):
        frame = call_precompile(
            new_state(fork), 5, modexp_input(base, exponent, modulus)
        )
        assert frame.output == output


def test_modexp_survives_lengths_that_no_memory_holds():
    huge = word(2**255)
    for fork in ("byzantium", "prague"):
        free = call_precompile(new_state(fork), 5, word(0) + huge + word(0))
        assert free.is_success
        assert free.output == b""
        dear = call_precompile(new_state(fork), 5, word(0) + huge + word(1))
        assert isinstance(dear.error, OutOfGas)
    assert call_precompile(new_state("osaka"), 5, word(0) + huge + word(0)).is_error


@pytest.mark.parametrize("position", [0, 1, 2])
def test_modexp_lengths_end_at_1024_bytes_from_osaka_on(position):
    lengths = [b"\x00"] * 3
    lengths[position] = bytes(1024)
    assert call_precompile(new_state("osaka"), 5, modexp_input(*lengths)).is_success
    lengths[position] = bytes(1025)
    frame = call_precompile(new_state("osaka"), 5, modexp_input(*lengths))
    assert type(frame.error) is VMError
    assert frame.get_gas_remaining() == 0
    assert call_precompile(new_state("prague"), 5, modexp_input(*lengths)).is_success


@pytest.fixture(scope="module")
def signature():
    key = ec.derive_private_key(0xC0FFEE, ec.SECP256R1())
    digest = bytes(range(32))
    signed = key.sign(digest, ec.ECDSA(utils.Prehashed(SHA256())))
    point = key.public_key().public_numbers()
    return (digest, *utils.decode_dss_signature(signed), point.x, point.y)


def p256_input(digest, *numbers):
    return digest + b"".join(map(word, numbers))


def test_p256_verify_outputs_one_for_a_signature(signature):
    frame = call_precompile(new_state("osaka"), 0x100, p256_input(*signature))
    assert frame.output == word(1)
    assert frame.get_gas_used() == 6900


def test_p256_verify_takes_the_other_s_as_well(signature):
    digest, r, s, x, y = signature
    assert is_p256_signature(digest, r, P256_ORDER - s, x, y)


def test_p256_verify_outputs_nothing_for_anything_else(signature):
    digest, r, s, x, y = signature
    wrong = [
        (bytes(32), r, s, x, y),
        (digest, 0, s, x, y),
        (digest, r, 0, x, y),
        (digest, P256_ORDER, s, x, y),
        (digest, r, P256_ORDER, x, y),
        (digest, r, s, x, y + 1),
        (digest, r, s, x, FIELD - y),
        (digest, r, s, 0, 0),
        (digest, r, s, x + FIELD if x + FIELD < 2**256 else FIELD, y),
        (digest, r, s, x, 2**256 - 1),
    ]
    for case in wrong:
        frame = call_precompile(new_state("osaka"), 0x100, p256_input(*case))
        assert frame.is_success
        assert frame.output == b""
        assert frame.get_gas_used() == 6900


def test_p256_verify_wants_exactly_160_bytes(signature):
    data = p256_input(*signature)
    for other in (data[:-1], data + b"\x00", b""):
        frame = call_precompile(new_state("osaka"), 0x100, other)
        assert (frame.output, frame.get_gas_used()) == (b"", 6900)


def test_p256_verify_needs_its_gas_and_osaka(signature):
    data = p256_input(*signature)
    assert call_precompile(new_state("osaka"), 0x100, data, gas=6899).is_error
    before = call_precompile(new_state("prague"), 0x100, data)
    assert (before.output, before.get_gas_used()) == (b"", 0)


def point_evaluation_input(**changes):
    # The commitment to the polynomial 0 is the point at infinity, and so is the proof.
    infinity = b"\xc0" + bytes(47)
    values = {
        "hash": bytes.fromhex(
            "010657f37554c781402a22917dee2f75def7ab966d7b770905398eba3c444014"
        ),
        "z": word(0x52),
        "y": word(0),
        "commitment": infinity,
        "proof": infinity,
    }
    return b"".join({**values, **changes}.values())


def test_point_evaluation_proves_a_value_of_a_blob():
    frame = call_precompile(new_state("cancun"), 0x0A, point_evaluation_input())
    assert frame.output[:32] == word(4096)
    assert frame.output[32:].hex().startswith("73eda753299d7d48")
    assert frame.get_gas_used() == 50_000


@pytest.mark.parametrize(
    "data",
    [
        point_evaluation_input()[:-1],
        point_evaluation_input(y=word(1)),
        point_evaluation_input(z=b"\xff" * 32),
        point_evaluation_input(hash=b"\x02" + bytes(31)),
        point_evaluation_input(proof=bytes(48)),
    ],
)
def test_point_evaluation_fails_where_there_is_no_proof(data):
    frame = call_precompile(new_state("cancun"), 0x0A, data)
    assert type(frame.error) is VMError
    assert frame.get_gas_remaining() == 0
