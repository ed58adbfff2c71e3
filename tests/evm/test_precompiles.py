import random

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.hashes import SHA256

from evm.frame_errors import FrameError, OutOfGas
from evm.precompiles.modexp import berlin_gas, byzantium_gas, osaka_gas
from evm.precompiles.signatures import FIELD, ORDER, is_signature
from tests.evm.frames import call_precompile, new_state, stock_state


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
    assert berlin_gas(data) == berlin
    assert osaka_gas(data) == osaka


def test_modexp_prices_short_numbers_and_long_exponents():
    assert osaka_gas(sized_input(32, b"\xff" * 32)) == 16 * 255
    assert osaka_gas(sized_input(33, b"\xff" * 33)) == 2 * 25 * (255 + 16)
    assert berlin_gas(sized_input(32, b"\xff" * 33)) == 16 * (255 + 8) // 3
    assert byzantium_gas(sized_input(32, b"\x03")) == 1024 // 20


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
            assert ours.gas_remaining == theirs.get_gas_remaining()
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
    assert not call_precompile(
        new_state("osaka"), 5, word(0) + huge + word(0)
    ).is_success


@pytest.mark.parametrize("position", [0, 1, 2])
def test_modexp_lengths_end_at_1024_bytes_from_osaka_on(position):
    lengths = [b"\x00"] * 3
    lengths[position] = bytes(1024)
    assert call_precompile(new_state("osaka"), 5, modexp_input(*lengths)).is_success
    lengths[position] = bytes(1025)
    frame = call_precompile(new_state("osaka"), 5, modexp_input(*lengths))
    assert isinstance(frame.error, FrameError)
    assert frame.gas_remaining == 0
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
    assert frame.gas_used == 6900


def test_p256_verify_takes_the_other_s_as_well(signature):
    digest, r, s, x, y = signature
    assert is_signature(digest, r, ORDER - s, x, y)


def test_p256_verify_outputs_nothing_for_anything_else(signature):
    digest, r, s, x, y = signature
    wrong = [
        (bytes(32), r, s, x, y),
        (digest, 0, s, x, y),
        (digest, r, 0, x, y),
        (digest, ORDER, s, x, y),
        (digest, r, ORDER, x, y),
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
        assert frame.gas_used == 6900


SMALL_X = (
    "58270d12bd05dd5000c531afd354263d3a02d4adb93b6b1ce7ced34c032c65cb",
    0x6F34B24828B4EFBCBAD39F16E008014367B4DB9FCA7B64CBD6972B0EF79E444F,
    0x31D1583751FD3E107030204AB04DB5793ED8E514C22C300B15E9EA8B1482EC35,
    5,
    0x459243B9AA581806FE913BCE99817ADE11CA503C64D9A3C533415C083248FBCC,
)
SMALL_Y = (
    "509a7d31be6f5406022828c2db5e769b9145f94b72ac59ef23521552181dc004",
    0x87A27881CF6C03933E40B35E90727E95BDEED296DEFC3A0B46E1F6DC4399A50D,
    0xB18ED445D6655F46A3F2B0A46B7A4619B5F50F5DB19C8EC192701697E49C9BC6,
    0xD7325D7646CD60D80A92738CEB345F844CFFAF35841022CAB176F692DE8DE1D7,
    5,
)
"""Digest, r, s, x, y of valid signatures; x or y is low enough to add the prime to it.

Made from u1 = 12345 and u2 = 67890: r = (u1·G + u2·Q).x, s = r / u2, digest = u1·s.
"""


@pytest.mark.parametrize(
    ("signed", "beyond_x", "beyond_y"), [(SMALL_X, FIELD, 0), (SMALL_Y, 0, FIELD)]
)
def test_p256_verify_rejects_coordinates_beyond_the_field(signed, beyond_x, beyond_y):
    digest, r, s, x, y = signed
    key = (r, s, x, y)
    state = new_state("osaka")
    data = p256_input(bytes.fromhex(digest), *key)
    assert call_precompile(state, 0x100, data).output == word(1)
    key = (r, s, x + beyond_x, y + beyond_y)
    data = p256_input(bytes.fromhex(digest), *key)
    assert call_precompile(state, 0x100, data).output == b""


def test_p256_verify_wants_exactly_160_bytes(signature):
    data = p256_input(*signature)
    for other in (data[:-1], data + b"\x00", b""):
        frame = call_precompile(new_state("osaka"), 0x100, other)
        assert (frame.output, frame.gas_used) == (b"", 6900)


def test_p256_verify_needs_its_gas_and_osaka(signature):
    data = p256_input(*signature)
    assert not call_precompile(new_state("osaka"), 0x100, data, gas=6899).is_success
    before = call_precompile(new_state("prague"), 0x100, data)
    assert (before.output, before.gas_used) == (b"", 0)


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
    assert frame.gas_used == 50_000


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
    assert isinstance(frame.error, FrameError)
    assert frame.gas_remaining == 0
