"""debug_executionWitness: a block is executed again using only its witness."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import pytest
import rlp
from eth_typing import Address, Hash32
from trie import HexaryTrie

from evm.blocks import Block, decode_block
from evm.chain_config import ChainConfig
from evm.changes import AccountValue
from evm.execution import execute_block
from evm.headers import ZERO_HASH
from evm.signatures import keccak
from evm.state_trie import StateTrie, decode_account_leaf
from evm.trie import NodeCache
from evm.world import World
from tests.support import copies, sample
from tests.support.live import Api, live_service


@pytest.fixture(scope="module")
def api(module_db: None) -> Iterator[Api]:
    copies.sample_chain()
    with (
        live_service() as live,
        live.api("sample", key=live.new_key(may_trace=True)) as api,
    ):
        yield api


class WitnessState:
    """The part of a state and its trie nodes that a witness contains."""

    def __init__(self, witness: dict[str, Any]) -> None:
        self.nodes_by_hash = {
            keccak(node): node
            for node in (bytes.fromhex(each[2:]) for each in witness["state"])
        }
        self._codes = {
            keccak(code): code
            for code in (bytes.fromhex(each[2:]) for each in witness["codes"])
        }
        self._emptied: set[Address] = set()
        self._accounts = HexaryTrie(
            self.nodes_by_hash, bytes.fromhex(witness["headers"][0]["stateRoot"][2:])
        )

    def account(self, address: Address) -> AccountValue | None:
        leaf = self._accounts.get(keccak(address))
        if not leaf:
            return None
        account = decode_account_leaf(leaf)
        is_emptied = address in self._emptied
        return account._replace(storage_root=None) if is_emptied else account

    def storage(self, address: Address, slot: int) -> int:
        account = self.account(address)
        if account is None or account.storage_root is None:
            return 0
        trie = HexaryTrie(self.nodes_by_hash, account.storage_root)
        leaf = trie.get(keccak(slot.to_bytes(32, "big")))
        return int.from_bytes(rlp.decode(leaf), "big") if leaf else 0

    def live_slots(self, address: Address) -> Iterable[int]:
        # A witness does not name slots. The storage of a contract that is destroyed
        # and created again begins empty.
        self._emptied.add(address)
        return []

    def code(self, code_hash: Hash32) -> bytes:
        return self._codes[code_hash]


class PathsOfWitness:
    """The nodes of a witness by path, found by their hashes."""

    def __init__(self, state: WitnessState, root: bytes) -> None:
        self._state = state
        self._root = root

    def nodes(
        self, owner: bytes, paths: Collection[bytes], likely: Collection[bytes] = ()
    ) -> Mapping[bytes, bytes]:
        root: bytes = self._root
        if owner:
            leaf = HexaryTrie(self._state.nodes_by_hash, root).get(owner)
            root = decode_account_leaf(leaf).storage_root or b"" if leaf else b""
        found = {path: self._at(root, path) for path in {*paths, *likely}}
        return {path: node for path, node in found.items() if node}

    def _at(self, reference: Any, path: bytes) -> bytes:
        """Return the node with a path, b"" if it is missing or embedded."""
        nodes = self._state.nodes_by_hash
        rest = list(path)
        while isinstance(reference, bytes) and reference in nodes:
            node = nodes[reference]
            if not rest:
                return node
            items = rlp.decode(node)
            if len(items) == 17:
                reference = items[rest.pop(0)]
                continue
            digits = [int(digit, 16) for digit in items[0].hex()]
            own = digits[1:] if digits[0] & 1 else digits[2:]
            if digits[0] & 2 or rest[: len(own)] != own:
                return b""
            reference, rest = items[1], rest[len(own) :]
        return b""


def root_from_witness(
    block: Block, config: ChainConfig, witness: dict[str, Any]
) -> bytes:
    """Execute a block using only its witness, and return the state root."""
    state = WitnessState(witness)
    is_merged = block.header.difficulty == 0
    fork = config.fork_at(block.header.number, block.header.timestamp, is_merged)
    world = World(state)
    hashes = [Hash32(bytes.fromhex(each["hash"][2:])) for each in witness["headers"]]
    execute_block(block, fork, config, world, hashes, lambda: ZERO_HASH)
    root = Hash32(bytes.fromhex(witness["headers"][0]["stateRoot"][2:]))
    tries = StateTrie(PathsOfWitness(state, root), NodeCache(0), root, state)
    clears = fork.clears_empty_accounts
    return tries.apply(world.changes(clears_empty_accounts=clears))


def test_each_block_is_executed_with_its_witness_alone(api: Api) -> None:
    config = ChainConfig.from_genesis(sample.genesis())
    for raw in sample.raw_blocks():
        block = decode_block(raw)
        name = "0x" + block.header.hash.hex()
        witness = api.result("debug_executionWitness", name)
        assert witness["keys"] is None
        assert witness["state"] == sorted(set(witness["state"]))
        assert witness["headers"][0]["hash"] == "0x" + block.header.parent_hash.hex()
        assert root_from_witness(block, config, witness) == block.header.state_root


def test_headers_are_rlp_by_an_option(api: Api) -> None:
    for raw in sample.raw_blocks()[-20:]:
        name = f"0x{decode_block(raw).header.hash.hex()}"
        witness = api.result("debug_executionWitness", name)
        same = api.result("debug_executionWitness", name, {"headers": "object"})
        assert same == witness
        found = api.result("debug_executionWitness", name, {"headers": "rlp"})
        hashes = [keccak(bytes.fromhex(each[2:])) for each in found["headers"]]
        assert hashes == [
            bytes.fromhex(each["hash"][2:]) for each in witness["headers"]
        ]
        assert {**found, "headers": [], "keys": None} == {**witness, "headers": []}
        traces = api.result(
            "debug_traceBlockByHash", name, {"tracer": "prestateTracer"}
        )
        assert set(found["keys"]) >= {
            key
            for trace in traces
            for address, account in trace["result"].items()
            for key in (address, *account.get("storage", {}))
        }


def test_tags_and_errors(api: Api) -> None:
    newest = api.result("debug_executionWitness", "latest")
    number = api.result("eth_blockNumber")
    assert api.result("debug_executionWitness", number) == newest
    unknown = "0x" + "12" * 32
    for params, message in (
        (["0x0"], "genesis is not traceable"),
        (["0xffff"], "block #65535 not found"),
        ([unknown], f"block {unknown} not found"),
    ):
        assert api.error("debug_executionWitness", *params) == (-32000, message)
    for options in ("canonical", {"headers": "json"}, {"header": "rlp"}, 7):
        code, message = api.error("debug_executionWitness", "latest", options)
        assert code == -32602
        assert 'want {"headers": "object"} or {"headers": "rlp"}' in message
