from __future__ import annotations

from dataclasses import replace

import pytest

from evm import rlp
from evm.rules.forks import (
    AMSTERDAM,
    BERLIN,
    CANCUN,
    ISTANBUL,
    LONDON,
    OSAKA,
    PARIS,
    PRAGUE,
    SHANGHAI,
)
from evm.transactions import decode_transaction
from nodeapi.sending.decoding import decode_submission
from nodeapi.sending.rules import HeadRules, check, check_size
from tests.nodeapi.sending.cases import (
    ACCESS_LIST,
    BLOB,
    BLOB_HASH,
    BLOB_TRANSACTION,
    CHAIN_ID,
    COMMITMENT,
    DYNAMIC,
    INVALID,
    LEGACY,
    MALFORMED,
    SET_CODE,
    VALID,
    changed,
    fields_of,
    signed,
    with_sidecar,
)

RULES = HeadRules(CHAIN_ID, OSAKA, 30_000_000)


def submit(raw: bytes, rules: HeadRules = RULES):
    """Decode and check a raw transaction, as before it is sent."""
    check_size(raw)
    submission = decode_submission(raw)
    check(submission, rules)
    return submission


def refusal(raw: bytes, **rules: object) -> str:
    with pytest.raises(ValueError) as caught:
        submit(raw, replace(RULES, **rules))
    return str(caught.value)


@pytest.mark.parametrize("name", MALFORMED)
def test_what_is_no_transaction_is_refused_with_geths_text(name):
    raw, text = MALFORMED[name]
    assert refusal(raw) == text


@pytest.mark.parametrize("name", INVALID)
def test_what_breaks_a_rule_is_refused_with_geths_text(name):
    raw, text = INVALID[name]
    assert refusal(raw) == text


@pytest.mark.parametrize("name", VALID)
def test_valid_transaction_is_decoded(name):
    raw = VALID[name]
    submission = submit(raw)
    assert submission.raw == raw
    # A network form contains the transaction as the first member of a list.
    expected = raw if submission.sidecar is None else signed(BLOB_TRANSACTION)
    reference = decode_transaction(expected)
    for member in reference.__slots__:
        if member not in ("_hash", "_sender"):
            found = getattr(submission.transaction, member)
            assert found == getattr(reference, member), member
    assert submission.transaction.hash == reference.hash
    assert submission.transaction.sender == reference.sender


def test_sidecars_are_decoded():
    for version, proofs in ((None, 1), (1, 128)):
        sidecar = decode_submission(with_sidecar(version)).sidecar
        assert sidecar is not None
        assert sidecar.version == (version or 0)
        assert sidecar.blobs == [BLOB]
        assert sidecar.commitments == [COMMITMENT]
        assert sidecar.proofs == [COMMITMENT] * proofs


@pytest.mark.parametrize(
    ("raw", "fork", "text"),
    [
        (signed(ACCESS_LIST), ISTANBUL, "type 1 rejected, pool not yet in Berlin"),
        (signed(DYNAMIC), ISTANBUL, "type 2 rejected, pool not yet in Berlin"),
        (signed(DYNAMIC), BERLIN, "type 2 rejected, pool not yet in London"),
        (with_sidecar(None), SHANGHAI, "type 3 rejected, pool not yet in Cancun"),
        (signed(SET_CODE), ISTANBUL, "type 4 rejected, pool not yet in Berlin"),
        (signed(SET_CODE), LONDON, "type 4 rejected, pool not yet in Prague"),
        (signed(SET_CODE), CANCUN, "type 4 rejected, pool not yet in Prague"),
    ],
)
def test_type_has_to_be_known_in_the_heads_fork(raw, fork, text):
    assert refusal(raw, fork=fork) == f"transaction type not supported: {text}"


def test_sidecar_has_to_be_that_of_the_fork():
    # From Osaka on, geth converts sidecars of version 0 to version 1.
    assert submit(with_sidecar(1), replace(RULES, fork=PRAGUE))
    assert submit(with_sidecar(None), replace(RULES, fork=CANCUN))
    too_many = "Wrong sidecar format: invalid number of 2 blob proofs expected 1"
    assert refusal(with_sidecar(None, proofs=2), fork=PRAGUE) == too_many


def test_limits_are_those_of_the_head():
    raw = signed(DYNAMIC, gas=2_000_000)
    assert refusal(raw, gas_limit=1_999_999) == "exceeds block gas limit"
    above_cap = signed(DYNAMIC, gas=2**24 + 1)
    assert submit(above_cap, replace(RULES, fork=PRAGUE))
    long = signed({**DYNAMIC, "to": b""}, gas=10_000_000, data=b"\0" * 49_153)
    assert submit(long, replace(RULES, fork=PARIS))
    cheap = signed(DYNAMIC, gas=22_000, data=b"\x01" * 50)
    assert submit(cheap, replace(RULES, fork=CANCUN))


def test_largest_chain_id_of_a_legacy_signature_is_read():
    raw = signed(LEGACY, chain_id=2**64)
    assert refusal(raw).endswith(f"have {2**64} want {CHAIN_ID}")
    assert submit(raw, replace(RULES, chain_id=2**64))


def test_too_long_blob_transaction_is_refused_before_it_is_decoded():
    raw = b"\x03" + b"\0" * 2**20
    limit = f"transaction size {2**20 + 1}, limit {2**20}"
    assert refusal(raw) == f"oversized data: {limit}"


def test_every_byte_of_a_transaction_matters():
    """A changed byte results in another transaction or an error, and never in a crash."""
    raw = signed(SET_CODE, gas=70_000, access_list=[(b"\xb0" * 20, [1])], data=b"\x01")
    for position in range(len(raw)):
        for flipped in (0x01, 0x80, 0xFF):
            other = bytearray(raw)
            other[position] ^= flipped
            try:
                found = submit(bytes(other))
            except ValueError:
                continue
            assert found.transaction.hash != decode_transaction(raw).hash


def test_members_may_be_empty():
    members = fields_of(signed(BLOB_TRANSACTION, blob_versioned_hashes=[BLOB_HASH]))
    assert members[10] == [BLOB_HASH]
    raw = b"\x03" + rlp.encode([changed_members(members, 8, []), [], [], []])
    assert decode_submission(raw).transaction.access_list == ()
    assert decode_submission(changed(signed(DYNAMIC), 5, b"")).transaction.to == b""


def changed_members(members: list, position: int, value: object) -> list:
    return [*members[:position], value, *members[position + 1 :]]


def test_amsterdam_lets_gas_exceed_the_limit_of_execution_gas():
    rules = replace(RULES, fork=AMSTERDAM, gas_limit=2**33)
    assert submit(signed(DYNAMIC, gas=2**32 - 1), rules)
    assert refusal(signed(DYNAMIC, gas=2**32), fork=AMSTERDAM, gas_limit=2**33) == (
        "transaction gas limit too high (cap: 4294967295, tx: 4294967296)"
    )
    accounts = [(number.to_bytes(20, "big"), []) for number in range(4100)]
    wide = signed(DYNAMIC, gas=20_000_000, access_list=accounts)
    assert refusal(wide, fork=AMSTERDAM) == (
        "insufficient gas for floor data gas cost: intrinsic cost 17159000, "
        "floor: 5269000"
    )
