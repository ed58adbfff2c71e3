"""Generated request bodies, valid and invalid, and checks of the responses."""

from __future__ import annotations

import json
from typing import Any

import httpx
from hypothesis import strategies as st

from evm.blocks import decode_block
from nodeapi.methods import registry
from tests.support import sample

METHODS = [method.name for method in registry]
JSON_HEADERS = {"content-type": "application/json"}
STATUSES = {200, 400, 429}
"""Accepted HTTP statuses. 429 means that the key has too many filters."""

_surrogates = st.characters(categories=["Cs", "Lu", "So", "Cc"])
_texts = st.text(max_size=20) | st.text(_surrogates, max_size=5)
_numbers = (
    st.integers()
    | st.integers(min_value=-(2**70), max_value=2**70)
    | st.integers(min_value=0, max_value=4000).map(lambda digits: 10**digits)
    | st.floats()
)
_scalars = st.none() | st.booleans() | _numbers | _texts
_values = st.recursive(
    _scalars,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(_texts, inner, max_size=4)
    ),
    max_leaves=8,
)

_hex = st.from_regex(r"0[xX]?[0-9a-fA-FzZ]{0,70}", fullmatch=True)
_some_blocks = [decode_block(raw) for raw in sample.raw_blocks()[-3:]]
_known_hashes = st.sampled_from([block.header.hash for block in _some_blocks])
_known_accounts = st.sampled_from(
    sorted({block.transactions[-1].to for block in _some_blocks if block.transactions})
)
_words = (st.binary(min_size=32, max_size=32) | _known_hashes).map(
    lambda word: "0x" + word.hex()
)
_accounts = (st.binary(min_size=20, max_size=20) | _known_accounts).map(
    lambda word: "0x" + word.hex()
)
_quantities = st.integers(min_value=0, max_value=2**65).map(hex)
_tags = st.sampled_from(
    ["latest", "earliest", "pending", "safe", "finalized", "Latest"]
)
_blocks = st.fixed_dictionaries(
    {},
    optional={
        "blockNumber": _quantities | _tags | _values,
        "blockHash": _words | _values,
        "requireCanonical": st.booleans() | _values,
    },
)
_slots = st.dictionaries(
    _accounts | _hex, st.lists(_words | _hex, max_size=4) | _values
)
_arguments = (
    _hex | _words | _accounts | _quantities | _tags | _blocks | _slots | _values
)

_methods = (
    st.sampled_from(METHODS)
    | st.sampled_from(
        ["eth_subscribe", "debug_traceBlockByHash", "rpc", "", "m" * 3000]
    )
    | _values
)
_calls = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.sampled_from(["2.0", "2.0", "2.0", "1.0", 2]),
        "id": _scalars | _values,
        "method": _methods,
        "params": st.lists(_arguments, max_size=4) | _values,
        "result": _values,
        "error": _values,
    },
)
_good_calls = st.fixed_dictionaries(
    {
        "jsonrpc": st.just("2.0"),
        "id": _scalars,
        "method": st.sampled_from(METHODS),
        "params": st.lists(_arguments, max_size=3),
    }
)
_messages = _good_calls | _calls | _values

_batches = st.lists(_messages, max_size=5) | st.builds(
    lambda message, count: [message] * count,
    _messages,
    st.sampled_from([99, 100, 101, 999, 1000, 1001, 3000]),
)


def _dump(value: Any, ascii_only: bool) -> bytes:
    """Encode as JSON, except that Python's NaN and Infinity are allowed."""
    text = json.dumps(value, ensure_ascii=ascii_only)
    return text.encode("utf-8", "surrogatepass")


_documents = st.builds(_dump, _messages | _batches, st.booleans())


def _damage(body: bytes, place: int, piece: bytes) -> bytes:
    place %= len(body) + 1
    return body[:place] + piece + body[place + len(piece) // 2 :]


_damaged = st.builds(
    _damage,
    _documents,
    st.integers(min_value=0),
    st.binary(max_size=3)
    | st.sampled_from([b"", b'"', b"{", b"]", b",", b"\\u", b"\xff"]),
)
_truncated = st.builds(
    lambda body, place: body[: place % (len(body) + 1)],
    _documents,
    st.integers(min_value=0),
)
_nested = st.builds(
    lambda opened, depth, rest: opened * depth + rest,
    st.sampled_from([b"[", b'{"a":', b'{"jsonrpc":"2.0","id":1,"params":[', b"[{}, "]),
    st.sampled_from([10, 500, 1000, 1030, 20_000]),
    st.binary(max_size=5) | st.just(b"1"),
)
_closed_nests = st.builds(
    lambda depth, core: (
        b'{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":'
        + b"[" * depth
        + core
        + b"]" * depth
        + b"}"
    ),
    st.sampled_from([10, 500, 1000, 1025, 5000, 50_000]),
    # orjson rejects the last two, which the standard library parses.
    st.sampled_from([b"", b"1e5", b'"\\ud800"']),
)
_duplicates = st.builds(
    lambda names, values: (
        b"{"
        + b",".join(b'"%b":%b' % pair for pair in zip(names, values, strict=False))
        + b"}"
    ),
    st.lists(st.sampled_from([b"jsonrpc", b"id", b"method", b"params"]), max_size=12),
    st.lists(
        st.builds(_dump, _scalars | st.sampled_from(["2.0", *METHODS]), st.booleans()),
        min_size=12,
        max_size=12,
    ),
)

MAX_BYTES = 2**20
"""Maximum size. Larger bodies take time without finding more faults."""

bodies = (
    _documents
    | _documents
    | _damaged
    | _truncated
    | _nested
    | _closed_nests
    | _duplicates
    | st.binary(max_size=50)
).filter(lambda body: len(body) <= MAX_BYTES)
"""A body to POST."""


def check_body(client: httpx.Client, body: bytes) -> None:
    """POST a body to the client's base URL, and check the response by JSON-RPC's rules."""
    response = client.post("", content=body, headers=JSON_HEADERS)
    assert response.status_code in STATUSES, (response.status_code, body)
    assert response.headers["content-type"] == "application/json"
    if not response.content:
        assert response.status_code == 200
        return
    answer = json.loads(response.content, parse_constant=_refuse, parse_int=str)
    if isinstance(answer, list):
        assert answer
        assert response.status_code == 200
        for member in answer:
            _check_answer(member)
    else:
        _check_answer(answer)


def _check_answer(answer: Any) -> None:
    assert isinstance(answer, dict)
    kind = "error" if "error" in answer else "result"
    assert list(answer) == ["jsonrpc", "id", kind]
    assert answer["jsonrpc"] == "2.0"
    assert not isinstance(answer["id"], list | dict)
    if kind == "error":
        error = answer["error"]
        assert int(error["code"]) < 0
        assert error["code"] != "-32603", error
        assert isinstance(error["message"], str)
        assert error["message"]


def _refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is not JSON")
