"""Every recorded request gets geth's response, except for the intended differences.

`make golden` records the responses. Networks leave `totalDifficulty` out of blocks here,
as geth does; that is a setting.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cache
from typing import Any

import pytest

from evm.chain_config import ChainConfig
from evm.transactions import CREATE_ADDRESS
from networks.models import Network
from networks.services import configure_network
from nodeapi.methods import registry
from tests.golden import recording
from tests.golden.chains import CHAINS
from tests.golden.differences import DIFFERENCES, MASKS, expected, masked
from tests.golden.geth import VERSION
from tests.golden.options import EXECUTED, SHORTENED
from tests.golden.parts import GROUPS, groups_of, parts_of
from tests.golden.recording import Recorded, Recording
from tests.support import copies
from tests.support.live import Api, live_service, request

NOT_RECORDED = {"trace_block", "trace_transaction", "rpc_modules", "rpc.discover"} | {
    "web3_clientVersion",
    *("eth_sendRawTransaction", "eth_subscribe", "eth_unsubscribe"),
    *("trace_replayTransaction", "trace_replayBlockTransactions"),
    *("trace_call", "trace_callMany", "trace_rawTransaction"),
    *("debug_getBadBlocks", "debug_executionWitness"),
    *("trace_filter", "trace_get"),
    *("eth_newBlockFilter", "eth_newPendingTransactionFilter"),
    *("eth_baseFee", "eth_capabilities", "eth_getAccount", "eth_getAccountInfo"),
    *("ots_getApiLevel", "ots_hasCode", "ots_getContractCreator"),
    *("ots_traceTransaction", "ots_getInternalOperations", "ots_getTransactionError"),
    *("ots_getBlockDetails", "ots_getBlockDetailsByHash", "ots_getBlockTransactions"),
    *("ots_searchTransactionsBefore", "ots_searchTransactionsAfter"),
    "ots_getTransactionBySenderAndNonce",
    *("erigon_getHeaderByNumber", "erigon_getHeaderByHash"),
    *("txpool_content", "txpool_contentFrom", "txpool_inspect", "txpool_status"),
    *("eth_pendingTransactions", "eth_sendRawTransactionSync", "eth_fillTransaction"),
    *("eth_getBlockAccessList", "debug_getRawBlockAccessList"),
    *("portcullis_getBlockAccessList", "portcullis_compareForks"),
}
"""Methods that geth lacks, those whose responses name the software, those that other
tests compare with geth or with other methods, and those that need a WebSocket."""

BATCH_CALLS = 25
"""Few, because a batch of traces that are executed takes long on a busy machine."""
BATCH_BYTES = 2**28
"""Of a batch's results: more than any batch here has."""
RARELY_SENT = 3
"""Of the sample chain's blocks of one kind, every third is traced with an option that
executes it again. Those of `tracing` all differ."""
ABSENT = "nothing"
SHOWN, SHOWN_TEXT = 3, 200
"""Wrong responses that a failure shows, and the characters of each value."""


@pytest.fixture(scope="module")
def recordings() -> dict[str, Recording]:
    """Read geth's responses, which take some hundred megabytes of memory."""
    return {name: recording.read(name, parts_of(name)) for name in CHAINS}


@pytest.fixture(scope="module")
def apis(module_db: None, recordings: dict[str, Recording]) -> Iterator[dict[str, Api]]:
    """Serve each chain as a network of its name."""
    for name, make in CHAINS.items():
        chain = make()
        assert chain.head == recordings[name].head, "the chain changed: make golden"
        copies.chain(name, chain.genesis, chain.raw)
        network = Network.objects.get(slug=name)
        configure_network(network=network, emit_total_difficulty=False)
    env = {"NODEAPI_MAX_BATCH_RESPONSE_BYTES": str(BATCH_BYTES)}
    with live_service(env=env) as live, ExitStack() as stack:
        key = live.new_key(may_trace=True)
        yield {name: stack.enter_context(live.api(name, key)) for name in CHAINS}


@pytest.mark.parametrize(
    ("chain", "group"), [(name, group) for name in CHAINS for group in groups_of(name)]
)
def test_responses_are_geths(
    apis: dict[str, Api], recordings: dict[str, Recording], chain: str, group: str
) -> None:
    recorded = sent(chain, group, recordings[chain].group(group))
    assert recorded
    wrong = []
    for each, response in zip(recorded, answers(apis[chain], recorded), strict=True):
        wanted, _ = expected(each.call, each.response, recordings[chain])
        if response != wanted and masked(response) != masked(wanted):
            place = difference(response, wanted)
            wrong.append((each.call.method, each.call.params, place))
    assert not wrong, f"{len(wrong)} of {len(recorded)} differ: {wrong[:SHOWN]}"


@cache
def block_kinds() -> dict[str, tuple[object, ...]]:
    """Return the kind of each of the sample chain's blocks by number, as hexadecimal.

    Blocks of a kind have the same fork and the same types of transactions, and all or
    none of them have creations.
    """
    chain = CHAINS["sample"]()
    config, kinds = ChainConfig.from_genesis(chain.genesis), {}
    for block in chain.blocks:
        header, transactions = block.header, block.transactions
        fork = config.fork_at(header.number, header.timestamp, header.difficulty == 0)
        types = frozenset(each.type for each in transactions)
        creates = any(each.to == CREATE_ADDRESS for each in transactions)
        kinds[hex(header.number)] = (fork.name, types, creates)
    return kinds


def sent(chain: str, group: str, recorded: list[Recorded]) -> list[Recorded]:
    """Return the recorded calls of a group that are sent: all, or those in rotation.

    Every option is sent for at least one block of each kind, and every block gets some
    of the options.
    """
    if chain != "sample" or group not in EXECUTED or group in SHORTENED:
        return recorded
    chosen, kinds = [], defaultdict[tuple[object, ...], list[Recorded]](list)
    for each in recorded:
        if each.call.method == "debug_traceBlockByNumber":
            kinds[block_kinds()[each.call.params[0]]].append(each)
        else:
            chosen.append(each)
    number = list(EXECUTED).index(group)
    for alike in kinds.values():
        every = min(RARELY_SENT, len(alike))
        chosen += alike[number % every :: every]
    return chosen


def answers(api: Api, recorded: list[Recorded]) -> list[dict[str, Any]]:
    """Return this service's responses: `{"result": …}` or `{"error": …}`."""
    messages = [
        {**request(each.call.method, *each.call.params), "id": number}
        for number, each in enumerate(recorded)
    ]
    found: list[dict[str, Any]] = []
    for start in range(0, len(messages), BATCH_CALLS):
        body = json.dumps(messages[start : start + BATCH_CALLS], separators=(",", ":"))
        found += api.post(body.encode()).json()
    assert [answer.pop("id") for answer in found] == list(range(len(messages)))
    for answer in found:
        assert answer.pop("jsonrpc") == "2.0"
    return found


def difference(ours: Any, geths: Any, path: str = "") -> str:
    """Return the place and the values of the first difference of two JSON values."""
    if isinstance(ours, dict) and isinstance(geths, dict):
        for name in [*geths, *ours]:
            if ours.get(name, ABSENT) != geths.get(name, ABSENT):
                inner = (value.get(name, ABSENT) for value in (ours, geths))
                return difference(*inner, f"{path}.{name}")
    if isinstance(ours, list) and isinstance(geths, list) and len(ours) == len(geths):
        for place, (one, other) in enumerate(zip(ours, geths, strict=True)):
            if one != other:
                return difference(one, other, f"{path}[{place}]")
    return f"{path}: {str(ours)[:SHOWN_TEXT]}, geth: {str(geths)[:SHOWN_TEXT]}"


def test_every_difference_is_needed(recordings: dict[str, Recording]) -> None:
    used, matched = set(), set()
    for chain in recordings.values():
        for each in chain.calls:
            used |= {d.reason for d in expected(each.call, each.response, chain)[1]}
        for each in chain.group("malformed"):
            text = json.dumps(each.response)
            matched |= {name for name, mask in MASKS.items() if mask.search(text)}
    assert used == {difference.reason for difference in DIFFERENCES}
    assert matched == set(MASKS)


def test_every_method_that_geth_has_is_recorded(
    recordings: dict[str, Recording],
) -> None:
    for name, chain in recordings.items():
        assert {each.call.group for each in chain.calls} == set(groups_of(name))
        if groups_of(name) == GROUPS:
            recorded = {each.call.method for each in chain.calls}
            assert {method.name for method in registry} - recorded == NOT_RECORDED


def test_recordings_are_small_and_of_the_expected_geth(
    recordings: dict[str, Recording],
) -> None:
    sizes = [path.stat().st_size for path in recording.FOLDER.iterdir()]
    assert sum(sizes) <= 3 * 2**20
    assert {each.geth for each in recordings.values()} == {VERSION}
