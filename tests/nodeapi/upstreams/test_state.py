"""Nodes and codes from one upstream: what is asked, and what is made of the answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from eth_typing import Address

from evm.proof_nodes import ProofNodes
from evm.proved_state import Keys, ProvedState, ProvedValues
from evm.signatures import keccak
from nodeapi.upstreams import state
from nodeapi.upstreams.client import UpstreamClient
from nodeapi.upstreams.errors import (
    MethodUnavailable,
    UnusableAnswer,
    UpstreamError,
    UpstreamUnavailable,
)
from nodeapi.upstreams.state import MAX_KEYS, Material
from samples.node import Refused
from tests.support.state_node import (
    BLOCK_HASH,
    NUMBER,
    StateNode,
    contract,
    make_state,
)
from tests.support.upstream_server import UpstreamServer, refuse, status
from tests.support.waiting import in_time

NODE = StateNode(make_state())
STATE = NODE.state
ABSENT = Address(b"\x77" * 20)
WITNESS = NODE.methods["debug_executionWitness"](hex(NUMBER))
HEADER_LIKE: list[Any] = [None, 7, "0x", "0xc0", [], {}, {"hash": 1}]
WRONG_VALUES: list[Any] = [
    *(None, 7, 1.5, True, "", "0x", "zz", "0xzz", "0x123", [], {}),
    *([None], [7], [[]], [{}], ["0xzz", None], {"proof": 7}, [{"proof": [7]}]),
]


def all_keys() -> Keys:
    slots = {(address, slot) for address, of in STATE.slots.items() for slot in of}
    slots |= {(ABSENT, 1), (contract(0), 2**200), (contract(2), 9)}
    return Keys({*STATE.accounts, ABSENT}, slots)


@pytest.fixture
def node(server: UpstreamServer) -> UpstreamServer:
    server.methods |= NODE.methods
    return server


def read(
    node: UpstreamServer,
    work: Callable[[UpstreamClient], Awaitable[Any]],
    scheme: str = "http",
) -> Any:
    async def scenario() -> Any:
        async with UpstreamClient(node.url(scheme)) as client:
            return await in_time(work(client))

    return asyncio.run(scenario())


def prove(client: UpstreamClient, keys: Keys) -> Awaitable[Material]:
    return state.proofs(client, NUMBER, BLOCK_HASH, keys)


def proved(material: Material, keys: Keys) -> tuple[ProvedValues, Keys]:
    nodes = ProofNodes(material.nodes)
    return ProvedState(NODE.anchor.state_root, nodes, material.codes).values(keys)


def check_values(values: ProvedValues) -> None:
    """Check that each value is that of the state."""
    for address, account in values.accounts.items():
        assert account == STATE.account(address)
        if account is not None and account.code_hash in STATE.codes:
            assert values.codes[account.code_hash] == STATE.codes[account.code_hash]
    for (address, slot), value in values.slots.items():
        assert value == STATE.storage(address, slot)


def test_values_absences_and_codes_are_proved_in_one_batch(
    node: UpstreamServer, scheme: str
) -> None:
    keys = all_keys()
    values, unknown = proved(read(node, lambda it: prove(it, keys), scheme), keys)
    assert not len(unknown)
    check_values(values)
    assert (values.accounts.keys(), values.slots.keys()) == (keys.accounts, keys.slots)
    assert values.codes.keys() == STATE.codes.keys()
    assert node.count("eth_getCode") == len(keys.accounts)
    assert {str(params[-1]) for _, params in node.calls} == {
        str({"blockHash": f"0x{BLOCK_HASH.hex()}"})
    }
    if scheme == "http":
        assert max(node.requests) <= 100


def test_an_account_with_many_slots_is_asked_in_several_calls(
    node: UpstreamServer,
) -> None:
    slots = {(contract(0), slot) for slot in range(2 * MAX_KEYS + 5)}
    keys = Keys(set(), slots)
    values, unknown = proved(read(node, lambda it: prove(it, keys)), keys)
    assert not len(unknown)
    check_values(values)
    sizes = [len(params[1]) for method, params in node.calls]
    assert sorted(sizes) == [5, MAX_KEYS, MAX_KEYS]
    assert node.count("eth_getCode") == 0


def test_an_upstream_that_refuses_block_objects_is_asked_by_number(
    node: UpstreamServer,
) -> None:
    for method, answer in NODE.methods.items():

        def by_number(*params: Any, answer: Any = answer) -> Any:
            if params[-1] != hex(NUMBER):
                raise Refused(-32602, "invalid argument: cannot unmarshal object")
            return answer(*params)

        node.methods[method] = by_number

    keys = Keys({contract(0)})

    async def scenario(client: UpstreamClient) -> list[int]:
        counts = []
        for _ in range(2):
            assert not len(proved(await prove(client, keys), keys)[1])
            counts.append(len(node.calls))
        for _ in range(2):
            await state.witness(client, NUMBER, BLOCK_HASH)
            counts.append(len(node.calls))
        return counts

    assert read(node, scenario) == [4, 6, 8, 9]


def test_the_first_error_is_raised_if_nothing_is_sent(node: UpstreamServer) -> None:
    node.methods["eth_getProof"] = refuse(-32000, "missing trie node 12")
    node.methods["eth_getCode"] = refuse(-32000, "state is not available")
    with pytest.raises(UpstreamError, match="missing trie node 12"):
        read(node, lambda it: prove(it, all_keys()))
    assert len(node.requests) <= state.REQUESTS_AT_ONCE
    node.methods["eth_getProof"] = NODE.methods["eth_getProof"]
    material = read(node, lambda it: prove(it, all_keys()))
    assert str(material.failure) == "state is not available (-32000)"
    values, unknown = proved(material, all_keys())
    check_values(values)
    assert unknown == Keys({contract(number) for number in range(3)})


def test_a_huge_response_is_not_read(node: UpstreamServer) -> None:
    node.methods["eth_getProof"] = lambda *_: {"accountProof": ["0x" + "0" * 2**21]}
    with pytest.raises(UpstreamUnavailable, match="is longer than"):
        read(node, lambda it: prove(it, Keys({contract(0)})))


@pytest.mark.parametrize("found", [7, None, [], {}, {"state": 7}, {"state": ["0x", 7]}])
def test_a_malformed_witness_is_unusable(node: UpstreamServer, found: Any) -> None:
    node.methods["debug_executionWitness"] = lambda _: found
    errors = UpstreamError if found is None else UnusableAnswer
    with pytest.raises(errors):
        read(node, lambda it: state.witness(it, NUMBER, BLOCK_HASH))


@pytest.mark.parametrize("headers", [None, HEADER_LIKE])
@pytest.mark.parametrize("is_object", [False, True])
def test_a_witness_proves_the_state(
    node: UpstreamServer, headers: Any, is_object: bool
) -> None:
    found = WITNESS | {"headers": headers}
    if is_object:  # reth's first form
        for name in ("state", "codes"):
            found[name] = {
                f"0x{keccak(bytes.fromhex(each[2:])).hex()}": each
                for each in found[name]
            }
    node.methods["debug_executionWitness"] = lambda _: found
    material = read(node, lambda it: state.witness(it, NUMBER, BLOCK_HASH))
    keys = Keys(set(STATE.accounts))
    values, unknown = proved(material, keys)
    assert not len(unknown)
    check_values(values)
    assert material.headers == {}


@pytest.mark.parametrize("is_gateway", [False, True])
def test_a_refused_witness_is_not_asked_again_for_some_minutes(
    node: UpstreamServer, is_gateway: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_gateway:
        node.fault = status(403)
    else:
        del node.methods["debug_executionWitness"]

    async def scenario(client: UpstreamClient) -> None:
        for _ in range(2):
            with pytest.raises(MethodUnavailable):
                await state.witness(client, NUMBER, BLOCK_HASH)
        assert node.count("debug_executionWitness") == 1
        monkeypatch.setattr("nodeapi.upstreams.client.REFUSAL_SECONDS", -1.0)
        with pytest.raises(MethodUnavailable):
            await state.witness(client, NUMBER, BLOCK_HASH)
        assert node.count("debug_executionWitness") == 2

    read(node, scenario)


@pytest.mark.parametrize("member", ["", "accountProof", "storageProof", "proof"])
def test_wrong_types_prove_nothing_and_hurt_nothing(
    node: UpstreamServer, member: str
) -> None:
    keys = Keys(set(), {(contract(0), 1)})
    sent: list[Any] = []

    def proof(*params: Any) -> Any:
        found = NODE.methods["eth_getProof"](*params)
        if not member:
            return sent[-1]
        if member == "proof":
            found["storageProof"][0]["proof"] = sent[-1]
        else:
            found[member] = sent[-1]
        return found

    async def scenario(client: UpstreamClient) -> None:
        for wrong in WRONG_VALUES:
            sent.append(wrong)
            try:
                values, unknown = proved(await prove(client, keys), keys)
            except UnusableAnswer:
                continue
            assert unknown == keys
            assert values == ProvedValues()

    node.methods["eth_getProof"] = proof
    read(node, scenario)
    assert sent == WRONG_VALUES


def test_many_keys_are_divided_by_the_size_of_their_proofs() -> None:
    accounts = {Address(number.to_bytes(20)) for number in range(2000)}
    slots = {(contract(0), slot) for slot in range(10_000)}
    parts = list(state.portions(Keys(accounts, slots)))
    assert {each for part in parts for each in part.accounts} == accounts
    assert {each for part in parts for each in part.slots} == slots
    assert sum(map(len, parts)) == 12_000
    assert len(parts) == 4
    assert max(len(part.accounts) for part in parts) < 1000
    assert list(state.portions(Keys())) == []
