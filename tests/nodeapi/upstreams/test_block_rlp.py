"""Blocks rebuilt from recorded JSON of geth, from our own JSON, and from altered JSON."""

from __future__ import annotations

import copy
import dataclasses
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evm import rlp
from evm.blocks import Block, Withdrawal, encode_block
from evm.signatures import keccak
from evm.signing import sign_transaction
from evm.trie_roots import ordered_root
from nodeapi.documents.blocks import (
    block_document,
    transaction_document,
    uncle_document,
)
from nodeapi.upstreams.block_rlp import (
    header_of,
    rebuild_block,
    uncle_hashes,
    unknown_types,
    verified,
)
from nodeapi.upstreams.errors import (
    UnknownTransactionType,
    UnsupportedBlock,
    WrongBlock,
)
from samples.builder import uncles_hash
from tests.evm.test_headers import AMSTERDAM, CANCUN, HEADER, LONDON, PRAGUE, SHANGHAI
from tests.evm.test_transactions import FIELDS, KEY
from tests.golden import recording
from tests.golden.chains import CHAINS
from tests.support.odd import VALUES


@dataclass(frozen=True)
class Case:
    """A block, and the documents from which it has to be rebuilt."""

    name: str
    hash: bytes
    raw: bytes
    document: dict[str, Any]
    uncles: list[dict[str, Any]]

    def rebuilt(self, document: dict[str, Any] | None = None) -> bytes:
        return verified(
            rebuild_block(document or self.document, self.uncles), self.hash
        )


def case_of(block: Block) -> Case:
    """Return a block with our own documents. Its hashes need not be valid."""
    head, offset = block_document(block, 17)
    transactions = [
        transaction_document(transaction, block.header, index)
        for index, transaction in enumerate(block.transactions)
    ]
    text = head[:offset] + b"[" + b",".join(transactions) + b"]}"
    uncles = [json.loads(uncle_document(uncle)) for uncle in block.uncles]
    raw, block_hash = encode_block(block), block.header.hash
    name = f"ours {block.header.number}"
    return Case(name, block_hash, raw, json.loads(text), uncles)


def geths_cases(chain: str) -> Iterator[Case]:
    recorded = recording.read(chain, ["blocks"])
    for block, raw in zip(CHAINS[chain]().blocks, CHAINS[chain]().raw, strict=True):
        block_hash = "0x" + block.header.hash.hex()
        document = recorded.find("eth_getBlockByHash", block_hash, True)["result"]
        method = "eth_getUncleByBlockHashAndIndex"
        uncles = [
            recorded.find(method, block_hash, hex(index))["result"]
            for index in range(len(block.uncles))
        ]
        name = f"geth {chain} {block.header.number}"
        yield Case(name, block.header.hash, raw, document, uncles)


@cache
def cases() -> list[Case]:
    """Return all blocks of both chains, with geth's documents and with ours."""
    found = []
    for chain in CHAINS:
        found += geths_cases(chain)
        found += map(case_of, CHAINS[chain]().blocks)
    return found


TRANSACTIONS = tuple(sign_transaction(fields, KEY) for fields in FIELDS.values())
WITHDRAWALS = (Withdrawal(0, 255, b"\x07" * 20, 10**9), Withdrawal(1, 0, bytes(20), 0))


def sealed(header: Any, uncles: Any = (), withdrawals: Any = None) -> Block:
    """Return a block with every type of transaction, and the roots of its body."""
    header = dataclasses.replace(
        header,
        transactions_root=ordered_root([each.raw for each in TRANSACTIONS]),
        uncles_hash=uncles_hash(uncles),
    )
    if withdrawals is not None:
        root = ordered_root([each.encode() for each in withdrawals])
        header = dataclasses.replace(header, withdrawals_root=root)
    return Block(header, TRANSACTIONS, uncles, withdrawals)


BLOCKS = {
    "Frontier": sealed(HEADER, (HEADER, LONDON)),
    "London": sealed(LONDON),
    "Shanghai": sealed(SHANGHAI, withdrawals=()),
    "Cancun": sealed(CANCUN, withdrawals=WITHDRAWALS),
    "Prague": sealed(PRAGUE, withdrawals=WITHDRAWALS),
    "Amsterdam": sealed(AMSTERDAM, withdrawals=WITHDRAWALS),
}
FULL = case_of(BLOCKS["Prague"])
UNCLED = case_of(BLOCKS["Frontier"])

DERIVED = {
    "size",
    "totalDifficulty",
    "transactions.blockHash",
    "transactions.blockNumber",
    "transactions.blockTimestamp",
    "transactions.transactionIndex",
    "transactions.from",
    "transactions.v",  # from type 1 on
    "transactions.gasPrice",  # from type 2 on
    "transactions.chainId",  # of legacy transactions
}
"""Members that the encoding lacks, at least for some types."""

Path = tuple[str | int, ...]


def leaves(value: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the paths of everything in a document, containers included."""
    if path:
        yield path
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, item in items:
        yield from leaves(item, (*path, key))


def shape(path: Path) -> str:
    return ".".join(key for key in path if isinstance(key, str))


def altered(value: Any, path: Path, change: Callable[[Any], Any]) -> Any:
    """Return a copy of a document with one changed value."""
    if not path:
        return change(value)
    first, *rest = path
    found = copy.copy(value)
    found[first] = altered(value[first], tuple(rest), change)
    return found


def other(value: Any) -> Any:
    """Return another value of the same type."""
    if isinstance(value, str):
        return (
            value[:-1] + ("1" if value[-1] != "1" else "2") if value != "0x" else "0x00"
        )
    if value is None:
        return "0x" + "ab" * 20
    if isinstance(value, list):
        return [*value, value[0] if value else "0x" + "00" * 32]
    return {**value, **{name: other(item) for name, item in value.items()}}


def is_derived(case: Case, path: Path) -> bool:
    name = shape(path)
    if name not in DERIVED:
        return False
    if path[0] != "transactions":
        return True
    kind = int(case.document["transactions"][path[1]]["type"], 16)
    return {"v": kind >= 1, "gasPrice": kind >= 2, "chainId": kind == 0}.get(
        str(path[-1]), True
    )


def assert_refused(case: Case, document: dict[str, Any]) -> str:
    """Check that a document is rejected, and return the reason."""
    with pytest.raises((WrongBlock, UnknownTransactionType)) as caught:
        case.rebuilt(document)
    return str(caught.value)


# Rebuilding


def test_every_block_is_rebuilt_from_geths_json_and_from_ours():
    assert len(cases()) > 100
    kinds = set()
    for case in cases():
        assert case.rebuilt() == case.raw, case.name
        kinds |= {each["type"] for each in case.document["transactions"]}
    assert kinds == {"0x0", "0x1", "0x2", "0x3", "0x4"}
    assert any(case.uncles for case in cases())
    assert any(case.document.get("withdrawals") for case in cases())


@pytest.mark.parametrize("fork", BLOCKS)
def test_block_of_each_fork_is_rebuilt(fork: str):
    case = case_of(BLOCKS[fork])
    assert case.rebuilt() == case.raw


def test_members_in_other_spellings_are_the_same_block():
    document = copy.deepcopy(UNCLED.document)
    document["baseFeePerGas"] = document["withdrawalsRoot"] = None
    document["miner"] = "0x" + document["miner"][2:].upper()
    first = document["transactions"][0]
    del first["type"]  # as before Berlin
    first["gas"] = "0x000" + first["gas"][2:]
    first["r"] = "0x" + first["r"][2:].rjust(64, "0")
    document["transactions"][2].pop("to")
    assert UNCLED.rebuilt(document) == UNCLED.raw


# Alterations


@pytest.mark.parametrize("case", [FULL, UNCLED], ids=["Prague", "Frontier"])
def test_every_alteration_of_a_block_is_refused(case: Case):
    for path in leaves(case.document):
        document = altered(case.document, path, other)
        if is_derived(case, path):
            assert case.rebuilt(document) == case.raw
        else:
            assert assert_refused(case, document), path


def test_every_alteration_of_an_uncle_is_refused():
    for index, uncle in enumerate(UNCLED.uncles):
        for path in leaves(uncle):
            if path not in {("size",), ("uncles",)}:
                uncles = list(UNCLED.uncles)
                uncles[index] = altered(uncle, path, other)
                with pytest.raises(WrongBlock, match=f"uncle {index}: "):
                    rebuild_block(UNCLED.document, uncles)


def test_an_alteration_of_each_field_of_each_block_is_refused():
    for case in cases():
        random = Random(case.name)
        paths = list(leaves(case.document))
        random.shuffle(paths)
        for path in {shape(path): path for path in paths}.values():
            document = altered(case.document, path, other)
            if is_derived(case, path):
                assert case.rebuilt(document) == case.raw
            else:
                assert assert_refused(case, document), (case.name, path)


@given(st.data())
def test_any_json_in_place_of_a_member_is_refused(data: st.DataObject):
    case = data.draw(st.sampled_from([FULL, UNCLED]))
    paths = [path for path in leaves(case.document) if not is_derived(case, path)]
    path = data.draw(st.sampled_from(paths))
    odd = data.draw(
        st.sampled_from(list(VALUES.values()))
        | st.sampled_from(
            ["0x", "0x0", "0x00", "0x_1", "0x+1", "0x１", 0, [None], [{}]]
        )
    )
    document = altered(case.document, path, lambda _: odd)
    try:
        assert case.rebuilt(document) == case.raw  # such as `0x0` in place of `0x0`
    except (WrongBlock, UnknownTransactionType) as error:
        assert str(error)


@pytest.mark.parametrize(
    ("path", "change", "reason"),
    [
        (("stateRoot",), other, "the header's hash is 0x"),
        (("hash",), other, "the header's hash is 0x"),
        (("gasUsed",), lambda _: "5", "gasUsed: no quantity"),
        (("extraData",), lambda _: "0x0", "extraData: no data"),
        (("logsBloom",), lambda _: "0x00", "logsBloom: 1 bytes, not 256"),
        (("miner",), lambda _: None, "miner: no data"),
        (("baseFeePerGas",), lambda _: None, "header: a header field is there without"),
        (("withdrawals",), lambda _: None, "withdrawals: no list"),
        (("withdrawals",), lambda found: found[1:], "the withdrawals have the root 0x"),
        (("withdrawals", 1, "amount"), other, "the withdrawals have the root 0x"),
        (
            ("withdrawals", 1, "amount"),
            lambda _: 5,
            "withdrawal 1: amount: no quantity",
        ),
        (("transactions", 3, "r"), other, "transaction 3: its hash is 0x"),
        (
            ("transactions",),
            lambda found: found[1:],
            "the transactions have the root 0x",
        ),
        (
            ("transactions",),
            lambda found: found[::-1],
            "the transactions have the root",
        ),
        (
            ("transactions", 2),
            lambda found: found["hash"],
            "transactions: [2]: no object",
        ),
        (
            ("transactions", 3, "accessList", 0, "storageKeys", 1),
            lambda _: "0x1",
            "transaction 3: accessList: [0]: storageKeys: [1]: no data",
        ),
        (
            ("transactions", 6, "authorizationList", 0, "yParity"),
            lambda _: None,
            "transaction 6: authorizationList: [0]: yParity: no quantity",
        ),
        (
            ("transactions", 0, "type"),
            lambda _: "0x7e",
            "transaction type 126 is unknown",
        ),
        *(
            ((name,), lambda _, bits=bits: hex(2**bits), f"{name}: {2**bits} exceeds")
            for name, bits in (
                *(("number", 63), ("gasLimit", 63), ("gasUsed", 63)),
                *(("timestamp", 64), ("blobGasUsed", 64), ("excessBlobGas", 64)),
            )
        ),
        (("difficulty",), lambda _: "0x" + "1" * 65, "difficulty: no quantity"),
        (
            ("transactions", 3, "nonce"),
            lambda _: hex(2**64),
            f"transaction 3: nonce: {2**64} exceeds 64 bits",
        ),
        (
            ("withdrawals", 0, "amount"),
            lambda _: hex(2**64),
            f"withdrawal 0: amount: {2**64} exceeds 64 bits",
        ),
        (
            ("transactions", 0, "type"),
            lambda _: "0x80",
            "transaction 0: type: 128 exceeds 7 bits",
        ),
        (("uncles",), lambda _: ["0x" + "00" * 32] * 3, "uncles: 3 exceed 2"),
        (("uncles",), lambda _: ["0x" + "00" * 32], "0 uncles, not 1"),
    ],
)
def test_reason_names_what_is_wrong(path: Path, change: Callable, reason: str):
    assert reason in assert_refused(FULL, altered(FULL.document, path, change))


def test_consistent_lies_are_refused():
    """The transaction or header has its own hash, but not the one that the block names."""
    fields = FIELDS["dynamic fee"]
    forged = sign_transaction(fields | {"value": 1}, KEY)
    document = copy.deepcopy(FULL.document)
    document["transactions"][4] = json.loads(transaction_document(forged, PRAGUE, 4))
    assert "the transactions have the root" in assert_refused(FULL, document)

    uncles = [UNCLED.uncles[0], UNCLED.uncles[0]]
    document = UNCLED.document | {"uncles": [each["hash"] for each in uncles]}
    with pytest.raises(WrongBlock, match="the uncles have the root"):
        verified(rebuild_block(document, uncles), UNCLED.hash)

    block = BLOCKS["Prague"]
    header = dataclasses.replace(block.header, state_root=bytes(32))
    forged_block = case_of(dataclasses.replace(block, header=header))
    assert "the header's hash is" in assert_refused(FULL, forged_block.document)


def test_members_of_a_later_fork_are_named():
    document = FULL.document | {"laterHash": "0x" + "11" * 32}
    assert header_of(document).hash == FULL.hash  # it may be no part of the header
    document["stateRoot"] = "0x" + "00" * 32
    with pytest.raises(WrongBlock, match="unknown members laterHash"):
        header_of(document)


def test_unknown_types_are_listed_and_may_be_given_raw():
    document = altered(FULL.document, ("transactions", 1, "type"), lambda _: "0x7e")
    assert unknown_types(document) == {1: 126}
    assert unknown_types(FULL.document) == {}
    given_raw = {1: TRANSACTIONS[1].raw}
    raw = rebuild_block(document, (), given_raw)
    assert verified(raw, FULL.hash) == FULL.raw
    with pytest.raises(WrongBlock, match="the transactions have the root"):
        verified(rebuild_block(document, (), {1: b"\x7e\x01"}), FULL.hash)


def test_uncle_hashes_are_those_of_the_document():
    assert uncle_hashes(UNCLED.document) == [HEADER.hash, LONDON.hash]


# Raw blocks


def parts(case: Case) -> list[bytes]:
    return rlp.list_items(case.raw)


def joined(*items: bytes) -> bytes:
    return rlp.wrap_list(b"".join(items))


def in_string(part: bytes, index: int) -> bytes:
    """Return a list's RLP with an item wrapped in a string."""
    items = rlp.list_items(part)
    items[index] = rlp.encode(items[index])
    return joined(*items)


FULL_PARTS, UNCLED_PARTS = parts(FULL), parts(UNCLED)
HEAD, BODY, NO_UNCLES, PAID = FULL_PARTS


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "no RLP"),
        (b"\xc0", "0 parts"),
        (FULL.raw[:-1], "no RLP"),
        (FULL.raw + b"\x00", "no RLP"),
        (b"\x80", "no RLP"),
        (UNCLED.raw, "the header's hash is 0x" + UNCLED.hash.hex()),
        (joined(HEAD, b"\xc0", NO_UNCLES, PAID), "the transactions have the root"),
        (joined(HEAD, BODY, UNCLED_PARTS[2], PAID), "the uncles have the root"),
        (joined(HEAD, BODY, NO_UNCLES, b"\xc0"), "the withdrawals have the root"),
        (joined(HEAD, BODY, NO_UNCLES), "the withdrawals have the root none"),
        (joined(HEAD, BODY, NO_UNCLES, PAID, b"\xc0"), "5 parts"),
        (joined(HEAD, b"\x80", NO_UNCLES, PAID), "the body is no RLP"),
        # The roots are those of the lists themselves.
        (joined(HEAD, in_string(BODY, 0), NO_UNCLES, PAID), "a list inside a string"),
        (joined(HEAD, BODY, NO_UNCLES, in_string(PAID, 1)), "a list inside a string"),
    ],
)
def test_raw_block_with_another_hash_is_refused(raw: bytes, reason: str):
    with pytest.raises(WrongBlock) as caught:
        verified(raw, FULL.hash)
    assert reason in caught.value.reason


@given(st.data())
def test_any_changed_byte_is_noticed(data: st.DataObject):
    raw = bytearray(FULL.raw)
    position = data.draw(st.integers(0, len(raw) - 1))
    raw[position] ^= data.draw(st.integers(1, 255))
    with pytest.raises(WrongBlock):
        verified(bytes(raw), FULL.hash)


def test_block_without_withdrawals_has_no_part_for_them():
    with pytest.raises(WrongBlock, match="the withdrawals have the root 0x"):
        verified(joined(*UNCLED_PARTS, b"\xc0"), UNCLED.hash)


def test_authentic_header_of_a_later_fork_is_unsupported():
    items = [*AMSTERDAM.items(), b"\x05" * 32]
    raw = joined(rlp.encode(items), b"\xc0", b"\xc0", b"\xc0")
    with pytest.raises(UnsupportedBlock, match="header: "):
        verified(raw, keccak(rlp.encode(items)))
