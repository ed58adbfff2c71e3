import pytest

from abi.encoding import call_data, mapping_slot, selector, topic
from samples.assembler import OPCODES, AssemblerError, assemble, init_code
from tests.support.tokens import error_reason


def code(text, **data):
    return assemble(text, data).hex()


def test_push_takes_the_shortest_form_that_holds_the_value():
    assert code("PUSH 0") == "6000"
    assert code("PUSH 255 PUSH 256") == "60ff610100"
    assert code("PUSH 0x00ff") == "60ff"
    assert code("PUSH 0x123") == "610123"


def test_push_of_a_given_size_pads_numbers_left_and_texts_right():
    assert code("PUSH4 7") == "6300000007"
    assert code('PUSH4 "ab"') == "6361620000"


def test_push0_is_an_instruction_of_its_own():
    assert code("PUSH0 PUSH0 REVERT") == "5f5ffd"


def test_labels_are_found_forwards_and_backwards():
    text = """
    start:  PUSH @end JUMPI     ; forwards
            PUSH @start JUMP    ; backwards
    end:    STOP
    """
    assert code(text) == "5b61000957610000565b00"


def test_data_is_placed_and_measured():
    text = """
            PUSH #blob PUSH @blob
            .data blob
            .data tail 0xc0ffee
    """
    assert code(text, blob=b"\xaa\xbb") == "610002610006aabbc0ffee"


def test_depths_are_encoded_as_eip_8024_lists_them():
    assert code("DUPN 17 SWAPN 108 DUPN 235") == "e680" + "e7db" + "e65a"
    assert code("EXCHANGE 1 2 EXCHANGE 1 19 EXCHANGE 14 16") == "e88e" + "e82f" + "e850"


def test_selectors_and_topics_are_hashed():
    assert code('PUSH4 selector("transfer(address,uint256)")') == "63a9059cbb"
    assert code('PUSH32 topic("Transfer(address,address,uint256)")') == (
        "7fddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
    )


def test_comments_and_empty_lines_leave_nothing():
    assert code('; PUSH 1\n\n  STOP ; "text"') == "00"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("STOP\nHALT", "line 2: no instruction 'HALT'"),
        ("PUSH @nowhere", "line 1: no label 'nowhere'"),
        ("a: a:", "line 1: label 'a' stands twice"),
        ("1: STOP", "line 1: bad label '1'"),
        ("PUSH1 256", "line 1: 256 is too long for PUSH1"),
        ("PUSH33 1", "line 1: no instruction 'PUSH33'"),
        ("PUSH", "line 1: bad value ''"),
        ("PUSH -1", "line 1: bad value '-1'"),
        ("PUSH1 @a\na:", "line 1: a reference needs PUSH or PUSH2"),
        ("DUPN 16", "line 1: bad depth '16'"),
        ("SWAPN", "line 1: bad depth ''"),
        ("EXCHANGE 2 1", "line 1: bad depth '2 1'"),
        ("EXCHANGE 15 16", "line 1: bad depth '15 16'"),
        (".data unknown", "line 1: no data given for 'unknown'"),
    ],
)
def test_a_wrong_text_is_refused_with_its_line(text, message):
    with pytest.raises(AssemblerError) as error:
        assemble(text)
    assert str(error.value) == message


def test_opcodes_stand_where_the_specification_puts_them():
    places = {"CLZ": 0x1E, "SHA3": 0x20, "PREVRANDAO": 0x44, "SLOTNUM": 0x4B}
    places |= {"PUSH0": 0x5F, "PUSH32": 0x7F, "DUP16": 0x8F, "SWAP16": 0x9F}
    places |= {"LOG4": 0xA4, "CREATE2": 0xF5, "STATICCALL": 0xFA, "SELFDESTRUCT": 0xFF}
    assert {name: OPCODES[name] for name in places} == places
    assert OPCODES["DIFFICULTY"] == 0x44


def test_init_code_deploys_the_runtime_behind_its_constructor():
    assert init_code(b"\x00").hex() == "61000180" + "61000d" + "6000396000f300"
    with_arguments = init_code(b"\x00", "PUSH @arguments POP", b"\x07")
    assert with_arguments.endswith(b"\x00\x07")
    assert with_arguments[1:3] == (len(with_arguments) - 1).to_bytes(2, "big")


def test_the_abi_is_solidity_s():
    assert selector("balanceOf(address)").hex() == "70a08231"
    assert topic("Approval(address,address,uint256)").hex().startswith("8c5be1e5")
    assert call_data("f(uint256)", 5)[4:] == (5).to_bytes(32, "big")
    assert call_data("f(address)", b"\x01" * 20)[4:] == bytes(12) + b"\x01" * 20
    assert error_reason("x").hex() == "08c379a0" + (
        f"{32:064x}{1:064x}" + "78".ljust(64, "0")
    )


def test_a_mapping_s_slot_is_the_hash_of_key_and_position():
    # keccak of 64 zero bytes, a well-known value.
    assert hex(mapping_slot(0, 0)) == (
        "0xad3228b676f7d3cd4284a5443f17f1962b36e491b30a40b2405849e597ba5fb5"
    )
