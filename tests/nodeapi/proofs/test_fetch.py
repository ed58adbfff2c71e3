"""Values that are proved with what upstreams send, whatever they send."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
from eth_typing import Address, Hash32

from evm.proof_nodes import ProofNodes
from evm.proved_state import Keys, ProvedState, ProvedValues
from evm.world import EMPTY_CODE_HASH
from nodeapi.chain.memory_state import MemoryState
from nodeapi.proofs.fetch import Fetched, fetch
from nodeapi.proofs.values import Anchor, NoProof
from nodeapi.upstreams import state
from nodeapi.upstreams.client import UpstreamClient
from nodeapi.upstreams.errors import UpstreamError, UpstreamUnavailable
from samples.node import Refused
from tests.support.state_node import (
    BLOCK_HASH,
    NUMBER,
    Change,
    LocalClient,
    StateNode,
    contract,
    make_state,
)

NODE = StateNode(make_state())
OTHER = StateNode(make_state(seed=2))
STATE = NODE.state
ANCHOR = NODE.anchor
ABSENT = Address(b"\x77" * 20)
SEEDS = 1000


def some_keys(chance: random.Random | None = None, count: int = 4) -> Keys:
    """Return contracts, accounts, absent accounts, and slots of some."""
    chance = chance or random.Random(1)
    accounts = [*chance.sample(sorted(STATE.accounts), count), contract(0), ABSENT]
    slots = [
        *(
            (contract(0), slot)
            for slot in chance.sample(sorted(STATE.slots[contract(0)]), count)
        ),
        *((contract(0), chance.getrandbits(256)) for _ in range(count)),
        *((contract(number), 5) for number in (1, 2)),
        (ABSENT, 1),
    ]
    return Keys(set(accounts), set(slots))


@dataclass
class Outcome:
    """What a fetch has returned or raised, and reported."""

    fetched: Fetched | None = None
    error: NoProof | None = None
    reported: list[tuple[UpstreamClient, str]] = field(default_factory=list)


def run(
    clients: Sequence[UpstreamClient], keys: Keys, anchor: Anchor = ANCHOR
) -> Outcome:
    outcome = Outcome()

    def report(client: UpstreamClient, reason: str) -> None:
        outcome.reported.append((client, reason))

    try:
        outcome.fetched = asyncio.run(fetch(clients, anchor, keys, report))
    except NoProof as error:
        outcome.error = error
    return outcome


def check(outcome: Outcome, keys: Keys) -> None:
    """Check that all keys are proved, each with the state's value."""
    assert outcome.error is None
    assert outcome.fetched is not None
    check_values(outcome.fetched.values)
    assert outcome.fetched.values.accounts.keys() == keys.accounts
    assert outcome.fetched.values.slots.keys() == keys.slots


def check_values(values: ProvedValues, wanted: MemoryState = STATE) -> None:
    for address, account in values.accounts.items():
        assert account == wanted.account(address)
        if account is not None and account.code_hash != EMPTY_CODE_HASH:
            assert values.codes[account.code_hash] == wanted.code(account.code_hash)
    for key, value in values.slots.items():
        assert value == wanted.storage(*key)


def honest() -> LocalClient:
    return LocalClient(NODE.methods)


def liar(change: Change) -> LocalClient:
    return LocalClient(NODE.methods, change)


def test_one_batch_proves_everything() -> None:
    client, keys = honest(), some_keys()
    outcome = run([client, honest()], keys)
    check(outcome, keys)
    assert len(client.batches) == 1
    assert outcome.reported == []
    assert outcome.fetched is not None
    rows = outcome.fetched.nodes.rows(ANCHOR.state_root)
    assert rows[b""][b""] == NODE.tries.prove_accounts([ABSENT])[0].nodes[0]


def test_many_keys_are_verified_in_a_thread() -> None:
    keys = Keys(
        set(STATE.accounts), {(contract(0), s) for s in STATE.slots[contract(0)]}
    )
    client = honest()
    check(run([client], keys), keys)
    assert max(map(len, client.batches)) <= 100


def test_the_next_upstream_is_asked_only_for_what_is_missing() -> None:
    keys = some_keys()

    def without_slots(method: str, result: Any) -> Any:
        return result | {"storageProof": []} if method == "eth_getProof" else result

    def without_code(method: str, result: Any) -> Any:
        return "0x" if method == "eth_getCode" else result

    first, second, third = liar(without_slots), liar(without_code), honest()
    check(run([first, second, third], keys), keys)
    asked = [params for batch in second.batches for method, params in batch]
    assert {params[0] for params in asked} == {
        f"0x{address.hex()}" for address in (contract(0), contract(1))
    }
    check(run([first, liar(without_code), honest()], keys), keys)


def test_a_part_of_an_answer_is_followed_by_a_request_for_the_rest() -> None:
    keys = Keys(set(STATE.accounts))
    client = Limited(NODE.methods)
    check(run([client], keys), keys)
    first, *_, last = client.batches
    assert len(first) == 100
    assert len(last) < 100


class Limited(LocalClient):
    """An upstream that answers the first 30 calls of a request, as geth may do."""

    async def batch(
        self, calls: Sequence[Any], max_bytes: int | None = None
    ) -> list[Any]:
        answers = await super().batch(calls, max_bytes)
        refused = UpstreamError(-32003, "response too large")
        return answers[:30] + [refused] * len(answers[30:])


class Unavailable(LocalClient):
    async def batch(
        self, calls: Sequence[Any], max_bytes: int | None = None
    ) -> list[Any]:
        raise UpstreamUnavailable("no response within 10 s")


def test_the_error_names_what_each_upstream_has_answered() -> None:
    pruned = LocalClient({})
    lying = LocalClient(OTHER.methods)
    missing = Unavailable({})
    clients = [pruned, lying, missing]
    keys = some_keys()
    outcome = run(clients, keys)
    assert outcome.error is not None
    assert outcome.error.keys == keys
    assert str(outcome.error) == (
        f"{len(keys)} of {len(keys)} values at block {NUMBER} are not proved: "
        "upstream 1: the method eth_getProof does not exist (-32601); "
        "upstream 2: its nodes and codes are not those of the block's state; "
        "upstream 3: no response within 10 s"
    )
    assert [client for client, _ in outcome.reported] == [lying, missing]
    nobody = run([], keys).error
    assert nobody is not None
    assert nobody.reason.endswith("are not proved: there is no upstream")
    check(run([], Keys()), Keys())


def test_claimed_values_are_not_read() -> None:
    def claims(method: str, result: Any) -> Any:
        if method != "eth_getProof":
            return result
        proofs = [
            each | {"value": "0x666", "key": "0x1"} for each in result["storageProof"]
        ]
        return {
            "accountProof": result["accountProof"],
            "balance": "0x666",
            "nonce": "0x666",
            "codeHash": "0x" + "66" * 32,
            "storageHash": "0x" + "66" * 32,
            "storageProof": proofs,
        }

    client, keys = liar(claims), some_keys()
    outcome = run([client], keys)
    check(outcome, keys)
    assert outcome.reported == []


def test_proofs_of_another_state_prove_nothing() -> None:
    liars = [LocalClient(OTHER.methods), LocalClient(OTHER.methods)]
    keys = some_keys()
    outcome = run(liars, keys)
    assert outcome.error is not None
    assert outcome.error.keys == keys
    assert len(outcome.reported) == 2
    check(run([*liars, honest()], keys), keys)
    # A trusted root decides, not what most upstreams send.
    right = Anchor(NUMBER, BLOCK_HASH, Hash32(b"\x01" * 32))
    assert run([honest()], keys, right).fetched is None


def test_an_upstream_on_another_branch_is_not_reported() -> None:
    """Asked by number, it proves the state of its own block with the number."""

    def by_number(method: str) -> Callable[..., Any]:
        def answer(*params: Any) -> Any:
            if params[-1] != hex(NUMBER):
                raise Refused(-32602, "invalid argument")
            return OTHER.methods[method](*params)

        return answer

    methods = {name: by_number(name) for name in OTHER.methods}
    own, keys = f"0x{BLOCK_HASH.hex()}", some_keys()
    for claimed, is_reported in (("0x12", False), (own, True), (7, True)):
        block = {"eth_getBlockByNumber": lambda *_, it=claimed: {"hash": it}}
        client = LocalClient(methods | block)
        outcome = run([client, honest()], keys)
        check(outcome, keys)
        assert bool(outcome.reported) == is_reported, claimed


# Thousands of lies


def some_place(value: Any, chance: random.Random) -> tuple[Any, Any]:
    """Return a place in a JSON value: a list or object, and an index or a name in it."""
    while True:
        at = chance.choice(
            list(value) if isinstance(value, dict) else range(len(value))
        )
        if not value[at] or not isinstance(value[at], dict | list):
            return value, at
        if chance.random() < 0.1:
            return value, at
        value = value[at]


def corrupted(text: str, chance: random.Random) -> str:
    at = chance.randrange(2, len(text)) if len(text) > 2 else 0
    return text[:at] + chance.choice("0123456789abcdefxX ") + text[at + 1 :]


def truncated(text: str, chance: random.Random) -> str:
    return text[: chance.randrange(len(text) + 1)]


def extended(text: str, chance: random.Random) -> str:
    return text + chance.choice(["00", "0", "ff" * 600, text[2:], "\x00", "é"])


WRONG: list[Any] = [
    *(None, 0, -1, 1.5, 2**63, True, "", "0x", [], {}, [None], [[]], {"proof": []}),
    *("0x" + "00" * 532, "0xc0", "0x80", "0x" + "f9" * 40, ["0x" * 3]),
]


def mutate(result: Any, chance: random.Random) -> Any:
    """Return a result that is wrong in one to three places."""
    holder = [result]
    for _ in range(chance.randint(1, 3)):
        inside, at = some_place(holder, chance)
        other, there = some_place(holder, chance)
        kind = chance.randrange(6)
        value = inside[at]
        if kind < 3 and isinstance(value, str):
            inside[at] = (corrupted, truncated, extended)[kind](value, chance)
        elif kind == 3:  # swapped
            inside[at], other[there] = copied(other[there]), copied(value)
        elif kind == 4 and inside is not holder:  # omitted
            del inside[at]
        else:
            inside[at] = copied(chance.choice(WRONG))
    return holder[0]


def copied(value: Any) -> Any:
    return orjson.loads(orjson.dumps(value))


TRUTH: dict[tuple[str, str], bytes] = {}
"""Results of the node as JSON, by method and arguments."""


def remembered(method: str) -> Callable[..., Any]:
    """Return a method of the node that computes each result once."""

    def answer(*params: Any) -> Any:
        key = method, str(params)
        if key not in TRUTH:
            TRUTH[key] = orjson.dumps(NODE.methods[method](*params))
        return orjson.loads(TRUTH[key])

    return answer


METHODS = {method: remembered(method) for method in NODE.methods}


class Lying(LocalClient):
    """An upstream whose lies depend on a seed alone. lies: number of wrong results."""

    def __init__(self, seed: int) -> None:
        super().__init__(METHODS, self._lie)
        self._chance = random.Random(seed)
        self.lies = 0

    def _lie(self, _: str, result: Any) -> Any:
        if self._chance.random() > 0.7:
            return result
        self.lies += 1
        return mutate(result, self._chance)


def test_nothing_false_is_returned() -> None:
    async def scenario() -> tuple[int, int, int]:
        proved = failed = lies = 0
        for seed in range(SEEDS):
            keys = some_keys(random.Random(seed % 20), 1)
            try:
                client = Lying(seed)
                found = await fetch([client], ANCHOR, keys)
            except NoProof as error:
                assert error.keys
                failed += 1
            else:
                proved += 1
                check_values(found.values)
            lies += client.lies
        return proved, failed, lies

    proved, failed, lies = asyncio.run(scenario())
    assert proved > SEEDS // 3
    assert failed > SEEDS // 3
    assert lies > 5 * SEEDS


def test_an_honest_upstream_after_liars_proves_everything() -> None:
    for seed in range(50):
        keys = some_keys(random.Random(seed % 20), 2)
        clients = [*(Lying(seed + place) for place in range(3)), honest()]
        check(run(clients, keys), keys)


def test_nothing_false_follows_from_a_witness() -> None:
    small = StateNode(make_state(accounts=30, slots=20))
    truth = orjson.dumps(small.methods["debug_executionWitness"](hex(NUMBER)))
    slots = {(contract(0), slot) for slot in small.state.slots[contract(0)]}
    keys = Keys({*small.state.accounts, ABSENT}, {*slots, (contract(0), 10**9)})

    async def scenario() -> tuple[int, int]:
        proved = unknown = 0
        for seed in range(SEEDS):
            chance = random.Random(seed)

            def change(_: str, result: Any, chance: random.Random = chance) -> Any:
                return mutate(result, chance)

            methods = {"debug_executionWitness": lambda _: orjson.loads(truth)}
            client = LocalClient(methods, change)
            try:
                material = await state.witness(client, NUMBER, BLOCK_HASH)
            except (UpstreamError, UpstreamUnavailable):
                continue
            nodes = ProofNodes(material.nodes)
            found = ProvedState(small.anchor.state_root, nodes, material.codes)
            values, missing = found.values(keys)
            check_values(values, small.state)
            proved += not missing
            unknown += bool(missing)
        return proved, unknown

    proved, unknown = asyncio.run(scenario())
    assert proved > SEEDS // 10
    assert unknown > SEEDS // 10
