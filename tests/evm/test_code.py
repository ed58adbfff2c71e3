import random
import tracemalloc

from eth.vm.code_stream import CodeStream

from evm.code import JumpDestinationCache, JumpDestinations


def positions(code: bytes) -> set[int]:
    # The order of the positions varies, because results are cached.
    order = random.Random(len(code)).sample(range(len(code) + 40), len(code) + 40)
    found = JumpDestinations(code)
    first = {position for position in order if position in found}
    assert {position for position in order if position in found} == first
    return first


def test_jump_destinations_are_those_of_py_evm():
    choose = random.Random(7)
    for _ in range(200):
        code = bytes(
            choose.choice([0x5B, 0x5B, 0x60, 0x61, 0x65, 0x7F, 0x00, 0x5F, 0x80])
            for _ in range(choose.randrange(choose.choice([120, 5000])))
        )
        stream = CodeStream(code)
        expected = {
            position
            for position, byte in enumerate(code)
            if byte == 0x5B and stream.is_valid_opcode(position)
        }
        assert positions(code) == expected, code.hex()


def test_push_data_at_the_very_end_is_no_destination():
    assert positions(b"\x7f\x5b\x5b") == set()
    assert positions(b"\x60\x5b\x5b") == {2}


def test_finding_destinations_takes_linear_time():
    assert positions(b"\x60" * 49_151 + b"\x00") == set()


def test_destinations_take_little_more_memory_than_the_code():
    # Hundreds are cached. A set of positions would take 3 MB for each.
    code = b"\x5b" * 49_152
    tracemalloc.start()
    try:
        found = JumpDestinations(code)
        assert all(position in found for position in range(len(code)))
        assert tracemalloc.get_traced_memory()[0] < 60_000
    finally:
        tracemalloc.stop()


def test_the_oldest_destinations_are_removed_when_the_memory_is_used_up():
    codes = [bytes([0x5B, number]) * 20_000 for number in range(10)]
    tracemalloc.start()
    try:
        cache = JumpDestinationCache(3 * JumpDestinations(codes[0]).size)
        first = cache.get(codes[0])
        assert cache.get(bytes(codes[0])) is first
        for code in codes[1:]:
            assert 0 in cache.get(code)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert cache.get(codes[-1]) is cache.get(codes[-1])
    assert cache.get(codes[0]) is not first
    assert kept < 6 * len(codes[0])
    # Code that exceeds the limit by itself can still be executed.
    assert 0 in cache.get(b"\x5b" * 10**6)
