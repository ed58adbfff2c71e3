"""Roots built in one pass, compared with the reference library's."""

from __future__ import annotations

import pytest
import rlp
from hypothesis import given, settings
from hypothesis import strategies as st
from trie import HexaryTrie

from evm.trie import EMPTY_ROOT, build_root, ordered_root


def reference_root(content: dict[bytes, bytes]) -> bytes:
    reference = HexaryTrie({})
    for key, value in content.items():
        reference[key] = value
    return reference.root_hash


@pytest.mark.parametrize(
    "count", [0, 1, 2, 3, 15, 16, 17, 127, 128, 129, 130, 255, 256, 257, 400]
)
@pytest.mark.parametrize("size", [1, 30, 200])
def test_a_list_has_the_root_of_a_trie_keyed_by_index(count, size):
    values = [(i % 251 + 1).to_bytes(1, "big") * size for i in range(count)]
    expected = reference_root({rlp.encode(i): v for i, v in enumerate(values)})
    assert ordered_root(values) == expected


_keys = st.one_of(
    st.binary(min_size=32, max_size=32),
    st.lists(st.integers(0, 3), min_size=32, max_size=32).map(bytes),
    st.builds(
        lambda depth, tail: (b"\x77" * depth + tail + bytes(32))[:32],
        st.integers(0, 31),
        st.binary(min_size=1, max_size=2),
    ),
)


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(_keys, st.binary(min_size=1, max_size=70), max_size=40))
def test_sorted_items_have_the_root_of_their_trie(content):
    assert build_root(iter(sorted(content.items()))) == reference_root(content)


def test_nothing_has_the_empty_root():
    assert build_root([]) == ordered_root([]) == EMPTY_ROOT


@pytest.mark.parametrize(
    "keys",
    [
        (b"\x02" * 32, b"\x01" * 32),
        (b"\x01" * 32, b"\x01" * 32),
        (b"\x01", b"\x01\x02"),
    ],
)
def test_keys_out_of_order_or_inside_each_other_are_refused(keys):
    with pytest.raises(ValueError, match="does not follow"):
        build_root((key, b"value") for key in keys)
