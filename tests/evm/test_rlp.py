import io

import pytest
import rlp as reference
from hypothesis import given
from hypothesis import strategies as st

from evm import rlp
from evm.rlp import RlpError

items = st.recursive(
    st.binary(max_size=80), lambda inner: st.lists(inner, max_size=8), max_leaves=30
)


@given(items)
def test_encoding_is_the_reference_implementations(item):
    assert rlp.encode(item) == reference.encode(item)


@given(items)
def test_decoding_reverses_encoding(item):
    assert rlp.decode(rlp.encode(item)) == item


@given(st.binary(max_size=200))
def test_bytes_that_decode_are_the_only_encoding_of_their_item(data):
    try:
        item = rlp.decode(data)
    except RlpError:
        with pytest.raises(reference.exceptions.DecodingError):
            reference.decode(data)
    else:
        assert rlp.encode(item) == data
        assert reference.decode(data) == item


@given(st.lists(items, max_size=6))
def test_list_items_are_the_encoded_members(members):
    assert rlp.list_items(rlp.encode(members)) == [rlp.encode(m) for m in members]


@given(st.lists(st.lists(items, max_size=4), max_size=4), st.integers(0, 400))
def test_stream_gives_whole_lists_and_names_the_byte_where_one_is_cut(lists, cut):
    encoded = [rlp.encode(item) for item in lists]
    data = b"".join(encoded)
    assert list(rlp.read_items(io.BytesIO(data))) == encoded

    stream, whole, end = io.BytesIO(data[:cut]), [], 0
    for item in encoded:
        if end + len(item) > cut:
            break
        whole.append(item)
        end += len(item)
    reader = rlp.read_items(stream)
    assert [next(reader) for _ in whole] == whole
    if end == min(cut, len(data)):
        assert next(reader, None) is None
    else:
        with pytest.raises(RlpError, match=f"at byte {end}( |:)"):
            next(reader)


@given(st.integers(0, 2**256 - 1))
def test_integers_have_no_leading_zeros(value):
    data = rlp.encode_int(value)
    assert data[:1] != b"\x00"
    assert rlp.decode_int(data) == value


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ("", "0 items"),
        ("0102", "2 items"),
        ("8101", "encoded as a string"),
        ("82ff", "ends beyond"),
        ("b800", "shortest form"),
        ("b90001" + "ff", "shortest form"),
        ("b837" + "ff" * 55, "shortest form"),
        ("b9", "cut short"),
        ("b9ff", "cut short"),
        ("f8", "cut short"),
        ("c2c1", "ends beyond"),
        ("c18101", "ends beyond"),
        ("c28101", "encoded as a string"),
        ("c180" + "00", "2 items"),
        ("bfffffffffffffffff", "ends beyond"),
        ("ff" * 9, "ends beyond"),
    ],
)
def test_what_is_no_canonical_item_is_refused(data, reason):
    with pytest.raises(RlpError, match=reason):
        rlp.decode(bytes.fromhex(data))


def test_nesting_without_end_is_refused():
    nested = b"\xc0"
    for _ in range(10_000):
        nested = rlp.wrap_list(nested)
    with pytest.raises(RlpError, match="levels"):
        rlp.decode(nested)


@pytest.mark.parametrize("item", [5, "text", None, [b"", 7], bytearray(2)])
def test_only_bytes_and_lists_are_encoded(item):
    with pytest.raises(TypeError, match="no RLP for"):
        rlp.encode(item)


@pytest.mark.parametrize("data", [b"\x00", b"\x00\x01", bytes(32), b"\x01" * 33, []])
def test_integers_that_are_none_are_refused(data):
    with pytest.raises(RlpError):
        rlp.decode_int(data)


def test_strings_of_another_size_are_refused():
    assert rlp.decode_bytes(b"ab", 2) == b"ab"
    for item in (b"a", b"abc", [b"a", b"b"]):
        with pytest.raises(RlpError):
            rlp.decode_bytes(item, 2)


def test_string_is_no_list():
    with pytest.raises(RlpError, match="expected a list"):
        rlp.list_items(b"\x82ab")
    with pytest.raises(RlpError, match="after the list"):
        rlp.list_items(b"\xc0\x00")
    with pytest.raises(RlpError, match="expected an item"):
        rlp.list_items(b"")


def test_stream_refuses_garbage_and_lists_that_are_too_long():
    good = rlp.encode([b"x" * 70])
    with pytest.raises(RlpError, match=f"no RLP list at byte {len(good)}$"):
        list(rlp.read_items(io.BytesIO(good + b"garbage")))
    with pytest.raises(RlpError, match="at most 60 are allowed"):
        list(rlp.read_items(io.BytesIO(good), limit=60))
    with pytest.raises(RlpError, match="no RLP list at byte 0: a length"):
        list(rlp.read_items(io.BytesIO(b"\xf8\x01\x00")))


def test_stream_needs_not_give_all_it_is_asked_for():
    class Trickle(io.BytesIO):
        def read(self, size=-1):
            return super().read(min(size, 3))

    data = rlp.encode([b"x" * 300])
    assert list(rlp.read_items(Trickle(data))) == [data]


def test_stream_does_not_wait_for_more_than_one_list():
    first, second = rlp.encode([b"1"]), rlp.encode([b"2" * 100])
    stream = io.BytesIO(first + second)
    reader = rlp.read_items(stream)
    assert next(reader) == first
    assert stream.tell() == len(first)
