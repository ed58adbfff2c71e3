"""Trace records equal the execution, and suffice for every derived result."""

import itertools
import json
import random

import pytest

from evm.chain_config import LADDER
from evm.errors import InvalidTransaction
from evm.tracers import recorder
from evm.tracers.call import CallConfig, call_json, read_call
from evm.tracers.derived import (
    FOUR_BYTE_DERIVATION,
    NOOP_DERIVATION,
    call_derivation,
    code_hashes,
    flat_call_derivation,
    mux_derivation,
    prestate_derivation,
)
from evm.tracers.flat_call import FlatCallConfig, Place, flat_call_json
from evm.tracers.four_byte import four_byte_json
from evm.tracers.prestate import PrestateConfig, code_text, prestate_json
from evm.tracers.record import (
    TOO_LARGE,
    RecordDamaged,
    RecordTooLarge,
    TransactionRecord,
    compress_records,
    fill_calls,
    fill_codes,
    hold,
    pack,
    unpack,
    unpack_pieces,
)
from evm.tracers.recorder import Recorder
from evm.tracers.touched import EMPTY, TouchedAccount
from tests.support.executed import SENDER, Account, Chain
from tests.support.random_calls import (
    CONTRACTS,
    push,
    random_accounts,
    random_transaction,
)

FLAGS = (False, True)
CALL_CONFIGS = [
    CallConfig(only_top_call=top, with_log=log)
    for top, log in itertools.product(FLAGS, FLAGS)
]
FLAT_CONFIGS = [
    FlatCallConfig(convert_parity_errors=convert, include_precompiles=include)
    for convert, include in itertools.product(FLAGS, FLAGS)
]
PRESTATE_CONFIGS = [
    PrestateConfig(
        diff_mode=diff, disable_code=code, disable_storage=storage, include_empty=empty
    )
    for diff, code, storage, empty in itertools.product(FLAGS, FLAGS, FLAGS, FLAGS)
    if not (diff and empty)
]


def touched_now(recorder, world):
    """Return the accounts that the last transaction touched, from the world."""
    replaced = {}
    for target, address, previous in world._journal:
        if target is world._accounts:
            replaced.setdefault(address, previous)
    touched = []
    for address in sorted(recorder.accounts):
        before = after = world.account(address) or EMPTY
        if address in replaced:
            before = replaced[address] or EMPTY
        slots = []
        for slot in sorted(recorder.slots.get(address, ())):
            value = world.get_storage(address, slot)
            slots.append((slot, world._original.get((address, slot), value), value))
        is_destroyed = address in recorder.destroyed
        touched.append(TouchedAccount(address, before, after, slots, is_destroyed))
    return touched, set(replaced)


class Kept(Recorder):
    """A recorder that keeps the call tree and touched accounts of each transaction."""

    def __init__(self):
        super().__init__()
        self.kept = []

    def end(self, state, transaction, gas_used):
        touched, changed = touched_now(self, state.world)
        super().end(state, transaction, gas_used)
        self.kept.append((self.top, touched, changed))


def random_chain(fork, seed, transactions=6):
    """Return a block of random transactions, executed."""
    choose = random.Random(f"{fork} {seed}")
    chain = Chain(fork, random_accounts(choose, LADDER[fork]), Kept())
    for _ in range(transactions):
        nonce = chain.world.get_nonce(SENDER)
        one = random_transaction(choose, chain.fork, nonce)
        try:
            chain.apply(one)
        except InvalidTransaction:
            chain.executed.pop()  # the gas limit is below the intrinsic gas
    return chain


def codes_of(chain):
    return chain.codes() | chain.recorder.codes


@pytest.mark.parametrize("fork", LADDER)
def test_derived_answers_are_what_they_would_be_at_once(fork):
    for seed in range(6):
        chain = random_chain(fork, seed)
        codes = codes_of(chain)
        precompiles = chain.execution.state.precompiles
        for index, (top, touched, _) in enumerate(chain.recorder.kept):
            stored = chain.stored(index)
            record = chain.record(index)
            plain = fill_calls(record.calls, stored.document)
            assert plain.decode() == call_json(top)
            assert len(plain) == record.calls_size
            for config in CALL_CONFIGS:
                made = call_derivation(config).derive(stored, {})
                assert made.decode() == call_json(top, config)
            place = Place(stored.block_hash, stored.block_number, stored.hash, index)
            for flat_config in FLAT_CONFIGS:
                made = flat_call_derivation(flat_config).derive(stored, {})
                expected = flat_call_json(top, flat_config, precompiles, place)
                assert made.decode() == expected
            made = FOUR_BYTE_DERIVATION.derive(stored, {})
            assert made.decode() == four_byte_json(top, precompiles)
            assert code_hashes(stored) <= codes.keys()
            for prestate_config in PRESTATE_CONFIGS:
                made = prestate_derivation(prestate_config).derive(stored, codes)
                text = prestate_json(touched, prestate_config, code_text(codes))
                assert made.decode() == text
            filled = fill_codes(unpack(record.prestate), codes)
            assert filled == prestate_derivation().derive(stored, codes)
            assert len(filled) == record.prestate_size


@pytest.mark.parametrize("fork", LADDER)
def test_executing_again_gives_the_same_records(fork):
    for seed in range(3):
        first, second = random_chain(fork, seed), random_chain(fork, seed)
        for index in range(len(first.executed)):
            one, two = first.record(index), second.record(index)
            assert unpack(one.calls) == unpack(two.calls)
            assert (one.prestate, one.details) == (two.prestate, two.details)


@pytest.mark.parametrize("fork", LADDER)
def test_records_are_the_same_however_many_transactions_wait(fork, monkeypatch):
    for seed in range(3):
        together = random_chain(fork, seed)
        records = list(together.recorder.records)
        for waiting_bytes in (0, 4_000):
            monkeypatch.setattr(recorder, "WAITING_BYTES", waiting_bytes)
            parted = random_chain(fork, seed)
            assert parted.recorder.records == records
            assert codes_of(parted) == codes_of(together)
        monkeypatch.undo()


def snapshot(chain):
    """Return all non-empty accounts in prestateTracer's format."""
    world, found = chain.world, {}
    for address in set(chain.state.accounts) | set(world._accounts):
        account = world.account(address)
        if account is None or world.account_is_empty(address):
            continue
        slots = set(chain.state.slots.get(address, ())) | set(
            world._storage.get(address, ())
        )
        values = {slot: world.get_storage(address, slot) for slot in slots}
        found[f"0x{address.hex()}"] = {
            "balance": hex(account.balance),
            "nonce": account.nonce,
            "code": f"0x{world.get_code(address).hex()}",
            "storage": {
                f"0x{slot:064x}": f"0x{value:064x}"
                for slot, value in values.items()
                if value
            },
        }
    return found


def patched(state, difference):
    """Return a state after the changes that diff mode reports as `pre` and `post`."""
    state = json.loads(json.dumps(state))
    pre, post = difference["pre"], difference["post"]
    for address, before in pre.items():
        if address not in post:
            del state[address]
            continue
        account = state[address]
        for slot in before.get("storage", {}):
            account["storage"].pop(slot, None)
    for address, after in post.items():
        empty = {"balance": "0x0", "nonce": 0, "code": "0x", "storage": {}}
        account = state.setdefault(address, empty)
        account["storage"] |= after.get("storage", {})
        for member in ("balance", "nonce", "code"):
            account[member] = after.get(member, account[member])
        if (account["balance"], account["nonce"], account["code"]) == ("0x0", 0, "0x"):
            del state[address]
    return state


@pytest.mark.parametrize("fork", [f for f in LADDER if LADDER[f].clears_empty_accounts])
def test_the_difference_leads_to_the_next_transactions_state(fork):
    checked = 0
    for seed in range(8):
        choose = random.Random(f"{fork} {seed}")
        chain = Chain(fork, random_accounts(choose, LADDER[fork]), Kept())
        for _ in range(6):
            before = snapshot(chain)
            nonce = chain.world.get_nonce(SENDER)
            try:
                chain.apply(random_transaction(choose, chain.fork, nonce))
            except InvalidTransaction:
                chain.executed.pop()
                continue
            index = len(chain.executed) - 1
            stored, codes = chain.stored(index), codes_of(chain)
            config = PrestateConfig(diff_mode=True)
            answer = json.loads(prestate_derivation(config).derive(stored, codes))
            _, touched, changed = chain.recorder.kept[-1]
            assert changed <= {account.address for account in touched}
            if any(a.is_destroyed and a.after.nonce for a in touched):
                continue  # geth reports it as destroyed although that was undone
            after = snapshot(chain)
            assert patched(before, answer) == after
            checked += 1
    assert checked > 20


def stored_records(held):
    return [
        TransactionRecord(*row) for row in zip(*compress_records(held), strict=True)
    ]


def test_compressing_changes_nothing_but_the_size():
    chain = random_chain("osaka", 2)
    held = [chain.record(index) for index in range(len(chain.executed))]
    held += held[:2]  # equal payloads are compressed once
    compressed = stored_records(held)
    for one, two in zip(held, compressed, strict=True):
        for name in ("calls", "prestate", "details"):
            assert unpack(getattr(one, name)) == unpack(getattr(two, name))
        assert (one.calls_size, one.prestate_size) == (
            two.calls_size,
            two.prestate_size,
        )
        assert len(two.prestate) < len(one.prestate)
    assert stored_records([]) == []
    large = held[0]._replace(calls=TOO_LARGE)
    assert stored_records([large])[0].calls == TOO_LARGE


def test_the_tracers_of_a_mux_answer_under_their_names():
    chain = random_chain("osaka", 1)
    mux = mux_derivation(
        (("4byteTracer", FOUR_BYTE_DERIVATION), ("noopTracer", NOOP_DERIVATION))
    )
    stored = chain.stored(0)
    answer = json.loads(mux.derive(stored, {}))
    assert answer == {
        "4byteTracer": json.loads(FOUR_BYTE_DERIVATION.derive(stored, {})),
        "noopTracer": {},
    }
    assert mux.needs == {"calls"}


def test_a_tree_of_1024_levels_is_read_again():
    # Calls itself with all its gas but 1000.
    code = b"\x60\x00" * 5 + b"\x30\x61\x03\xe8\x5a\x03\xf1\x00"
    chain = Chain("homestead", {CONTRACTS[0]: Account(1, 1, code)})
    top = chain.run(CONTRACTS[0], gas=5_000_000)
    stored = chain.stored(0)
    text = fill_calls(stored.calls, stored.document)
    read, depth = read_call(text), 0
    assert call_json(read) == call_json(top) == text.decode()
    while read.calls:
        (read,), depth = read.calls, depth + 1
    assert depth == 1025
    assert read.error == "max call depth exceeded"
    assert flat_call_derivation().derive(stored, {}).count(b"traceAddress") == 1026


def test_what_is_too_much_is_not_recorded_and_the_rest_is():
    # Calls another account again and again with 4096 bytes of input.
    call = (
        b"\x60\x00\x60\x00\x61\x10\x00\x60\x00\x60\x00" + push(0xEE) + b"\x5a\xf1\x50"
    )
    loop = b"\x5b" + call + b"\x60\x00\x56"
    chain = Chain("osaka", {CONTRACTS[0]: Account(1, 1, loop)}, Recorder(100_000))
    top = chain.run(CONTRACTS[0], gas=1_000_000)
    assert top.error == "out of gas"
    assert not top.calls
    chain.run(CONTRACTS[1], gas=100_000)
    first, second = chain.record(0), chain.record(1)
    assert (first.calls, first.calls_size) == (TOO_LARGE, 0)
    with pytest.raises(RecordTooLarge):
        fill_calls(first.calls, b"")
    stored = chain.stored(0)
    with pytest.raises(RecordTooLarge):
        flat_call_derivation().derive(stored, {})
    assert json.loads(prestate_derivation().derive(stored, codes_of(chain)))
    assert second.calls_size > 0


def payload(size: int) -> bytes:
    """Return JSON that zstd compresses to some hundred bytes, and its content."""
    return b'{"output":"0x%s"}' % random.Random(size).randbytes(size).hex().encode()


def read_in_pieces(packed: bytes) -> bytes:
    return b"".join(unpack_pieces([packed[:50], packed[50:]]))


@pytest.mark.parametrize("size", [4, 60, 400, 2_500])
@pytest.mark.parametrize("read", [unpack, read_in_pieces])
def test_a_damaged_record_is_an_error_and_never_another_one(size, read):
    whole = payload(size)
    held = hold(whole)
    (stored,) = stored_records([TransactionRecord(held, held, held, 0, 0)])
    for packed in {pack(whole), stored.calls, stored.details}:
        assert read(packed) == whole
        for bit in range(len(packed) * 8):
            damaged = bytearray(packed)
            damaged[bit // 8] ^= 1 << bit % 8
            try:
                # Few of the bits are not covered by the checksum.
                assert read(bytes(damaged)) == whole
            except RecordDamaged:
                continue
        for end in range(len(packed)):
            with pytest.raises(RecordDamaged):
                read(packed[:end])


@pytest.mark.parametrize("read", [unpack, read_in_pieces])
def test_records_without_a_checksum_are_still_read(read):
    assert read(b"\x01" + payload(4)) == payload(4)
    with pytest.raises(RecordTooLarge):
        read(TOO_LARGE)
    with pytest.raises(RecordDamaged):
        read(TOO_LARGE + payload(4))
