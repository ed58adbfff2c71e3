from __future__ import annotations

import re
from hashlib import sha256
from zlib import crc32

from hypothesis import given
from hypothesis import strategies as st

from keys.format import ALPHABET, derive_key, digest, hint, is_well_formed, make_key


def test_new_keys_have_the_form_and_differ() -> None:
    keys = {make_key() for _ in range(200)}
    assert len(keys) == 200
    for key in keys:
        assert re.fullmatch("nk_[0-9A-Za-z]{36}", key)
        assert is_well_formed(key)


def test_checksum_is_the_crc_of_the_random_part_in_base62() -> None:
    key = make_key()
    number = 0
    for character in key[-6:]:
        number = number * 62 + ALPHABET.index(character)
    assert number == crc32(key[3:33].encode())


def test_alphabet_is_in_the_order_of_the_usual_base62() -> None:
    assert ALPHABET[:1] + ALPHABET[10:11] + ALPHABET[36:37] == "0Aa"
    assert len(set(ALPHABET)) == 62


@given(st.integers(3, 38), st.sampled_from(ALPHABET))
def test_one_wrong_character_is_noticed(place: int, character: str) -> None:
    key = make_key()
    wrong = key[:place] + character + key[place + 1 :]
    assert is_well_formed(wrong) == (wrong == key)


@given(st.text(max_size=60))
def test_no_text_but_a_key_is_well_formed(text: str) -> None:
    assert not is_well_formed(text)


def test_near_misses_are_malformed() -> None:
    key = make_key()
    for text in (key + "\n", " " + key, key[:-1], key + "0", key.upper(), key[3:]):
        assert not is_well_formed(text), text


def test_digest_and_hint_are_all_that_is_kept() -> None:
    key = make_key()
    assert digest(key) == sha256(key.encode()).hexdigest()
    assert hint(key) == f"{key[:7]}…{key[-4:]}"
    assert len(hint(key)) == 12


def test_derived_key_depends_on_secret_and_purpose_alone() -> None:
    key = derive_key(b"secret", b"wallet")
    assert is_well_formed(key)
    assert key == derive_key(b"secret", b"wallet")
    others = {(b"secret", b"other"), (b"other", b"wallet")}
    assert key not in {derive_key(*other) for other in others}
