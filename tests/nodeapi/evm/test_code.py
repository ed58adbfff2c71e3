import random

from eth.vm.code_stream import CodeStream

from nodeapi.evm.code import Code, jump_destinations


def test_jump_destinations_are_those_of_py_evm():
    choose = random.Random(7)
    for _ in range(200):
        code = bytes(
            choose.choice([0x5B, 0x5B, 0x60, 0x61, 0x65, 0x7F, 0x00, 0x5F, 0x80])
            for _ in range(choose.randrange(120))
        )
        stream = CodeStream(code)
        expected = {
            position
            for position, byte in enumerate(code)
            if byte == 0x5B and stream.is_valid_opcode(position)
        }
        assert jump_destinations(code) == expected


def test_push_data_at_the_very_end_is_no_destination():
    assert jump_destinations(b"\x7f\x5b\x5b") == set()
    assert jump_destinations(b"\x60\x5b\x5b") == {2}


def test_finding_destinations_takes_linear_time():
    assert jump_destinations(b"\x60" * 49_151 + b"\x00") == set()


def test_reading_ends_with_a_stop_and_seeks_come_back():
    code = Code(b"\x01\x02\x03")
    assert list(code) == [1, 2, 3, 0]
    code.program_counter = 1
    with code.seek(0):
        assert code.read(2) == b"\x01\x02"
    assert (code.peek(), len(code), code[2]) == (2, 3, 3)
    code.program_counter = 9
    assert code.peek() == 0
    assert code.read(3) == b""
