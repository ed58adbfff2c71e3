"""The reader of requests, compared with h11's for random bytes."""

from __future__ import annotations

import gc
import random
import re
from dataclasses import dataclass
from typing import Literal

import h11
import pytest

from server.reading import (
    MAX_HEADER_BYTES,
    MAX_HEADERS,
    MAX_PARTS,
    Body,
    Headers,
    HeadersTooLarge,
    MalformedRequest,
    RequestReader,
)

End = Literal["complete", "incomplete", "malformed"]


@dataclass
class Found:
    """A request as a parser understands it."""

    method: str
    headers: dict[bytes, bytes]
    body: bytes = b""
    is_complete: bool = False


def joined(headers: list[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """Return headers by name, repeated ones joined."""
    found: dict[bytes, bytes] = {}
    for name, value in headers:
        found[name] = found[name] + b", " + value if name in found else value
    return found


def read_ours(data: bytes, cuts: list[int]) -> tuple[list[Found], End]:
    """Return our reader's requests for data that arrives in pieces.

    The bytes that are handed over to uvicorn have to contain the same requests.
    """
    found, end, handed_over = read_pieces(data, cuts)
    if end != "malformed":
        assert read_pieces(handed_over, [])[0] == found
    return found, end


def read_pieces(data: bytes, cuts: list[int]) -> tuple[list[Found], End, bytes]:
    """Return requests, the end, and the bytes that are handed over to uvicorn."""
    reader = RequestReader()
    found: list[Found] = []
    handed_over, keeps_alive = b"", True
    try:
        for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
            reader.receive(data[start:end])
            while event := reader.next_event():
                if isinstance(event, Headers):
                    handed_over += event.raw + (event.body or b"")
                    found.append(Found(event.method, event.headers))
                    keeps_alive = event.keeps_alive
                    found[-1].body += event.body or b""
                    is_last = event.body is not None
                else:
                    handed_over += event.framed()
                    found[-1].body += event.data
                    is_last = event.is_last
                if is_last:
                    found[-1].is_complete = True
                    if not keeps_alive:
                        return found, "complete", handed_over
    except MalformedRequest:
        return found, "malformed", handed_over
    return found, "incomplete" if reader.begun else "complete", handed_over


def read_reference(data: bytes) -> tuple[list[Found], End]:
    """Return h11's requests for data."""
    found: list[Found] = []
    while data := data.lstrip(b"\r\n"):
        connection = h11.Connection(h11.SERVER, MAX_HEADER_BYTES)
        connection.receive_data(data)
        try:
            while True:
                event = connection.next_event()
                if event is h11.NEED_DATA:
                    return found, "complete" if found else "incomplete"
                if isinstance(event, h11.Request):
                    headers = joined(list(event.headers))
                    found.append(Found(event.method.decode(), headers))
                elif isinstance(event, h11.Data):
                    found[-1].body += event.data
                elif isinstance(event, h11.EndOfMessage):
                    found[-1].is_complete = True
                    data = bytes(connection.trailing_data[0])
                    break
                else:
                    return found, "complete"
        except h11.RemoteProtocolError:
            return found, "malformed"
        if connection.their_state is h11.MUST_CLOSE:
            break
    return found, "complete"


def complete(read: tuple[list[Found], End]) -> tuple[list[Found], End]:
    """Return the complete requests. Parts of others depend on the pieces."""
    found, end = read
    return [each for each in found if each.is_complete], end


STARTS = [b"POST / HTTP/1.1", b"GET /a?b HTTP/1.1", b"POST /v3/x HTTP/1.0"]
ODD_STARTS = [
    b"POST  / HTTP/1.1",
    b"POST /  HTTP/1.1",
    b"post / HTTP/1.1",
    b"POST / HTTP/3.1",
    b"POST /",
]
HEADERS = [b"Host: x", b"A: 1", b"A: 2", b"B:\t 3 ", b"Connection: close", b"C:"]
ODD_HEADERS = [b" folded", b"no colon", b"Na me: 1", b": 1", b"D: \x01", b"E : 1"]
LENGTHS = [b"%d", b"00%d"]
ODD_LENGTHS = [b"+%d", b"%d, %d", b"-1", b"x", b"%dx", b""]


def random_request(chance: random.Random) -> bytes:
    """Return a request that is often malformed."""

    def odd() -> bool:
        return chance.random() < 0.06

    body = bytes(chance.choices(b"ab\r\n0", k=chance.choice([0, 1, 5, 30])))
    lines = [chance.choice(ODD_STARTS if odd() else STARTS), b"Host: x"]
    lines += chance.choices(HEADERS[1:], k=chance.randrange(3))
    if odd():
        lines.append(chance.choice(ODD_HEADERS))
    if chance.random() < 0.5:
        text = chance.choice(ODD_LENGTHS if odd() else LENGTHS)
        length = text.replace(b"%d", b"%d" % len(body))
        lines += [b"Content-Length: " + length] * (2 if odd() else 1)
        if odd():
            lines.append(b"Content-Length: 7")
        if odd():
            lines.append(b"Transfer-Encoding: chunked")
    elif chance.random() < 0.5:
        odd_coding = b"gzip, chunked" if chance.random() < 0.5 else b"identity"
        lines.append(b"Transfer-Encoding: " + (odd_coding if odd() else b"chunked"))
        body = chunked(chance, body, odd())
    else:
        body = b""
    headers = lines[1:]
    chance.shuffle(headers)
    if chance.random() < 0.1:
        headers.append(b"Expect: 100-continue")
    return b"\r\n".join([lines[0], *headers, b"", b""]) + body


def chunked(chance: random.Random, body: bytes, is_odd: bool) -> bytes:
    """Return a body in chunks."""
    framed = b""
    while body:
        size = chance.randrange(1, len(body) + 1)
        extension = chance.choice([b"", b"", b";a=b"])
        framed += b"%x%b\r\n%b\r\n" % (size, extension, body[:size])
        body = body[size:]
    end = b"0\r\n" + chance.choice([b"", b"T: 1\r\n"]) + b"\r\n"
    if is_odd:
        end = chance.choice([b"g\r\n", b"0\r\nbad trailer\r\n\r\n", b"5\r\nabc\r\n"])
    return framed + end


STRICTER = [
    rb"post / ",  # a method that does not exist: names are case-sensitive
    rb"\x01",  # control characters in values
    rb"HTTP/3\.1",  # a version that does not exist
    rb"Content-Length: [^\r]*\r\n(.*\r\n)*Transfer-Encoding",  # request smuggling
    rb"Transfer-Encoding: [^\r]*\r\n(.*\r\n)*Content-Length",
    rb"\r\n[ \t]",  # folded headers, obsolete since RFC 7230
    rb"Transfer-Encoding: (gzip|identity)",
    rb"Content-Length: [^\r]*,",  # a list of lengths, even of equal ones
    rb"Content-Length: (\d+)\r\n(.*\r\n)*Content-Length: \1\r\n",
]
"""Requests that we reject and h11 accepts. RFC 9112 permits both."""


@pytest.mark.parametrize("seed", range(300))
def test_requests_are_understood_as_by_h11(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(10):
        stray = chance.choice([b"", b"", b"", b"\r\n", b"\r\n\r\n"])
        data = stray.join(random_request(chance) for _ in range(chance.randrange(1, 4)))
        is_cut = chance.random() < 0.3
        data = data[: chance.randrange(len(data))] if is_cut else data
        expected, expected_end = read_reference(data)
        whole = complete(read_ours(data, []))
        for count in (1, 3, 10):
            cuts = sorted(chance.choices(range(len(data) + 1), k=count))
            assert complete(read_ours(data, cuts)) == whole, (data, cuts)
        assert complete(read_ours(data, list(range(1, len(data))))) == whole
        ours, end = whole
        theirs, their_end = complete((expected, expected_end))
        if end == "malformed" and (ours, end) != (theirs, their_end):
            assert ours == theirs[: len(ours)], data
            # httptools finds errors within a line, h11 at its end.
            is_stricter = any(re.search(pattern, data) for pattern in STRICTER)
            assert is_stricter or is_cut, data
            continue
        assert ours == theirs, data
        if their_end == "malformed":
            assert end in ("malformed", "incomplete"), data


def test_body_that_looks_like_a_request_is_a_body() -> None:
    inner = b"POST /b HTTP/1.1\r\nHost: x\r\n\r\n"
    head = b"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(inner)
    for step in (1, 7, 1000):
        cuts = list(range(step, len(head + inner) * 2, step))
        found, end = read_ours((head + inner) * 2, cuts)
        assert [each.body for each in found] == [inner, inner]
        assert end == "complete"


@pytest.mark.parametrize(
    ("target", "path"),
    [
        (b"/v3/key?x=1", "/v3/key"),
        (b"/a%20b%2Fc", "/a b/c"),
        (b"http://host:80/v3/key?q", "/v3/key"),
        (b"*", None),
    ],
)
def test_path_of_a_target(target: bytes, path: str | None) -> None:
    reader = RequestReader()
    reader.receive(b"OPTIONS " + target + b" HTTP/1.1\r\nhost: x\r\n\r\n")
    event = reader.next_event()
    assert isinstance(event, Headers)
    assert event.path == path or path is None


def test_header_with_a_version_is_not_part_of_the_request_line() -> None:
    reader = RequestReader()
    reader.receive(b"GET /v3/key\r\nhost: x\r\na: HTTP/1.1\r\n\r\n")
    with pytest.raises(MalformedRequest):
        reader.next_event()


def test_chunk_extensions_and_trailers_are_bounded() -> None:
    head = b"POST / HTTP/1.1\r\nhost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    for piece, count in ((b"1;" + b"e" * 9000 + b"\r\na\r\n", 0), (b"T: 1\r\n", 1)):
        reader = RequestReader()
        reader.receive(head + (b"0\r\n" if count else b""))
        with pytest.raises(HeadersTooLarge):
            for _ in range(MAX_HEADERS * 100):
                reader.receive(piece)
                while reader.next_event():
                    pass


def test_many_small_chunks_are_no_framing_attack() -> None:
    reader = RequestReader()
    reader.receive(b"POST / HTTP/1.1\r\nhost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
    size = 0
    for _ in range(1000):
        reader.receive(b"1\r\na\r\n" * 100)
        while event := reader.next_event():
            size += len(event.data) if isinstance(event, Body) else 0
    assert size == 100_000


def body_events(body: bytes) -> list[Body]:
    """Return the parts of a chunked body that arrives at once."""
    reader = RequestReader()
    reader.receive(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
    reader.next_event()
    reader.receive(body)
    found = []
    while event := reader.next_event():
        assert isinstance(event, Body)
        found.append(event)
    return found


@pytest.mark.parametrize(
    "framed",
    [b"1\r\na\r\n" * 40_000, b"3d090\r\n" + b"\r\n" * 125_000 + b"\r\n"],
    ids=["tiny chunks", "empty lines"],
)
def test_parts_of_a_chunked_body_take_little_time_each(framed: bytes) -> None:
    found = body_events(framed + b"0\r\n\r\n")
    data = b"".join(event.data for event in found)
    assert data in (b"a" * 40_000, b"\r\n" * 125_000)
    assert [event.is_last for event in found].index(True) == len(found) - 1
    assert sum(event.size for event in found) == len(framed) + 5
    # The last slice of a part may consist of chunks of 6 bytes.
    assert max(event.parts for event in found) < MAX_PARTS + 16_384 / 6 + 1


def test_large_chunks_are_one_part() -> None:
    chunk = b"10000\r\n" + b"x" * 2**16 + b"\r\n"
    (event,) = body_events(chunk * 4)
    assert (len(event.data), event.is_last) == (2**18, False)
    assert event.parts < MAX_PARTS


def test_headers_are_bounded_even_if_they_arrive_at_once() -> None:
    reader = RequestReader()
    reader.receive(
        b"GET / HTTP/1.1\r\nhost: x\r\na: " + b"a" * MAX_HEADER_BYTES + b"\r\n\r\n"
    )
    with pytest.raises(HeadersTooLarge):
        reader.next_event()


def test_headers_are_not_kept_by_the_reader() -> None:
    reader = RequestReader()
    reader.receive(b"GET / HTTP/1.1\r\nhost: x\r\na: b\r\n\r\n")
    event = reader.next_event()
    assert isinstance(event, Headers)
    kept = [one for one in gc.get_referrers(event, event.headers) if one is not event]
    assert not any(one is reader.__dict__ or one is reader for one in kept)
