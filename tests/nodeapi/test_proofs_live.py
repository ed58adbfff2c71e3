"""eth_getProof at every block, checked by the reference library and by `portcullis`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import rlp
from trie import HexaryTrie

from evm.hexadecimal import to_hex
from evm.signatures import keccak
from networks.models import Network
from networks.services import configure_network
from nodeapi.chain.database import importer_connection
from nodeapi.tracing.context import TaskContext, TaskFailed
from nodeapi.tracing.states import StateCache
from nodeapi.tracing.tasks import proofs
from portcullis.verify import verify_proof
from samples.signers import create_address
from tests.nodeapi.chain.proving import ABSENT, ADDRESSES
from tests.nodeapi.chain.trees import ALICE, PARENTS, Node, genesis, tree
from tests.support import chains
from tests.support.live import Api, live_service

NODES = tree()
SLOTS = create_address(ALICE.address, 0)
EMPTY_ROOT = keccak(rlp.encode(b""))
INVALID_PARAMS = -32602


@pytest.fixture(scope="module", params=["rewound", "versions"])
def slug(request: pytest.FixtureRequest, module_db: None) -> str:
    """Import the tree of blocks, with and without versions of trie nodes."""
    name: str = request.param
    chains.import_blocks(name, genesis(), [])
    network = Network.objects.get(slug=name)
    configure_network(network=network, keep_proofs="all" if name == "versions" else 0)
    chains.import_blocks(name, genesis(), [NODES[block].raw for block in PARENTS])
    return name


@pytest.fixture(scope="module")
def api(slug: str) -> Iterator[Api]:
    with live_service() as live, live.api(slug) as api:
        yield api


def head_of(slug: str) -> Node:
    return next(n for n in NODES.values() if n.hash == chains.head(slug)[1])


def reference_value(root: bytes, key: bytes, proof: list[str]) -> bytes:
    """Return the value that the reference library finds in a proof."""
    nodes = [rlp.decode(bytes.fromhex(node[2:])) for node in proof]
    found: bytes = HexaryTrie.get_from_proof(root, keccak(key), nodes)
    return found


def check(found: dict[str, Any], node: Node, address: bytes, slots: list[int]) -> None:
    """Check a response against the state after a block."""
    root = node.state.root
    assert root is not None
    account, values = verify_proof(found, root, address, slots)
    stored = node.state.accounts.get(address)
    leaf = reference_value(root, address, found["accountProof"])
    if stored is None:
        assert leaf == b""
        assert found["codeHash"] == found["storageHash"] == "0x" + "00" * 32
        assert (account.nonce, account.balance, values) == (0, 0, [0] * len(slots))
        return
    assert (account.nonce, account.balance) == (stored.nonce, stored.balance)
    assert found["codeHash"] == to_hex(stored.code_hash)
    assert found["storageHash"] == to_hex(stored.storage_root or EMPTY_ROOT)
    for slot, value, shown in zip(slots, values, found["storageProof"], strict=True):
        assert value == node.state.storage(address, slot)
        if stored.storage_root is None:
            assert shown["proof"] == []
            continue
        key = slot.to_bytes(32, "big")
        proven = reference_value(stored.storage_root, key, shown["proof"])
        assert proven == (rlp.encode(value) if value else b"")


def test_every_account_of_every_block_is_proven(api: Api) -> None:
    slots = list(range(7))
    for node in NODES.values():
        calls = [
            (
                "eth_getProof",
                to_hex(address),
                [hex(slot) for slot in slots],
                to_hex(node.hash),
            )
            for address in [*ADDRESSES, ABSENT]
        ]
        for address, found in zip(
            [*ADDRESSES, ABSENT], api.results(calls), strict=True
        ):
            check(found, node, address, slots)


def test_tags_and_numbers_name_the_same_states(api: Api, slug: str) -> None:
    head = head_of(slug)
    address, keys = to_hex(SLOTS), ["0x0", "0x1"]
    expected = api.result("eth_getProof", address, keys, to_hex(head.hash))
    for block in ([], ["latest"], ["pending"], [hex(head.number)], [None]):
        assert api.result("eth_getProof", address, keys, *block) == expected
    older = NODES[head.line[-2]]
    found = api.result("eth_getProof", address, keys, hex(older.number))
    assert found == api.result("eth_getProof", address, keys, to_hex(older.hash))
    check(found, older, SLOTS, [0, 1])


def test_many_keys_are_proven_as_well(api: Api, slug: str) -> None:
    head = head_of(slug)
    slots = list(range(1024))
    found = api.result("eth_getProof", to_hex(SLOTS), [hex(slot) for slot in slots])
    check(found, head, SLOTS, slots)


def test_keys_are_named_as_geth_names_them(api: Api) -> None:
    word = "0x" + "0" * 63 + "1"
    sent = ["0x00", "0x01", "1", "", word, word[2:], word[:-1], "0X0A", "0x1", None]
    found = api.result("eth_getProof", to_hex(SLOTS), sent)
    named = [proof["key"] for proof in found["storageProof"]]
    zero = "0x" + "0" * 64
    assert named == [
        *("0x0", "0x1", "0x1", "0x0", word, word, zero, "0xa", "0x1", "0x0")
    ]


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ([to_hex(SLOTS)], "missing value for required argument 1"),
        (
            [to_hex(SLOTS), ["0x0"] * 1025, "0x99"],
            "too many storage keys requested (max 1024, got 1025)",
        ),
        (
            [to_hex(SLOTS), ["0x0", "0x" + "1" * 65], "0x99"],
            'storage key too long (want at most 32 bytes): "0x' + "1" * 65 + '"',
        ),
        ([to_hex(SLOTS), ["0xzz"], "0x99"], 'invalid hex in storage key: "0xzz"'),
        (
            [to_hex(SLOTS), "0x0"],
            "invalid argument 1: json: cannot unmarshal string into Go value of type "
            "[]string",
        ),
        (
            [to_hex(SLOTS), [1]],
            "invalid argument 1: json: cannot unmarshal number into Go value of type "
            "string",
        ),
    ],
)
def test_malformed_keys_are_refused_before_the_block(
    api: Api, params: list[Any], message: str
) -> None:
    assert api.error("eth_getProof", *params) == (INVALID_PARAMS, message)


def test_unknown_blocks_have_geth_s_errors(api: Api) -> None:
    params = to_hex(SLOTS), []
    assert api.error("eth_getProof", *params, "0x99") == (-32000, "header not found")
    unknown = "0x" + "99" * 32
    expected = -32000, "header for hash not found"
    assert api.error("eth_getProof", *params, unknown) == expected


def test_a_state_before_too_many_changes_is_not_proven(
    slug: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = Network.objects.get(slug=slug)
    monkeypatch.setattr(proofs, "MAX_CHANGES", 3)
    with importer_connection() as connection:
        context = TaskContext(
            connection,
            network.pk,
            NODES["t1"].hash,
            float("inf"),
            StateCache(),
            lambda _: None,
            lambda: None,
        )
        arguments: dict[str, Any] = {"address": to_hex(SLOTS), "keys": []}
        if network.keep_proofs != 0:
            assert proofs.prove(context, arguments)
            return
        with pytest.raises(TaskFailed) as failed:
            proofs.prove(context, arguments)
    message = "distance to target block exceeds maximum proof window"
    assert (failed.value.code, failed.value.message) == (INVALID_PARAMS, message)
