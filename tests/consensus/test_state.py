"""State fixtures: every entry of `post`, compared with geth's roots and hashes."""

from __future__ import annotations

import re

import pytest

from evm.signing import sign_transaction
from tests.consensus.state import run_state_test, state_subtests
from tests.consensus.verdict import Mismatch, UnknownFormat
from tests.consensus.writing import KEEPER, SECRET, account, state_fixture

ROOTS = {
    "Frontier": (
        "7459174cc7589fd83f59549bc564e2103deba30e1fc95eba351d440d4a0de535",
        "325bbbac683ce3b915c887a500f995a2f8e23ba38f7a10a70a2e47481fa13af2",
    ),
    "Berlin": (
        "6b787960f910016ab899e6abefc40b2f9d912e2c212e901b9cf6a1836e5ec6b4",
        "4985e26c5e5102292f6112b0502189e947bb0cee471b6293e9c909da51a48509",
    ),
    "Cancun": (
        "4a57fa164c634ce66584797932576856e652a734967c6cfc888d37a0587534ea",
        "6b68c74cbaddc079fc52ac15675e757101a0aeacf9531be044b57c30dc684bd0",
    ),
}
"""Post-state roots without and with a value of 1 wei; source: `evm statetest` of geth
1.17.2."""
for equal in ("EIP158", "Istanbul"):
    ROOTS[equal] = ROOTS["Frontier"]
for equal in ("London", "Paris", "Osaka"):
    ROOTS[equal] = ROOTS["Cancun"]

LOGS = "a502097c6d765e157ca8ce5ebbdf6ca52c7a4a063518a1deba9e67f3d8edf0f5"
"""Hash of KEEPER's one log; same source."""
NO_LOGS = "1dcc4de8dec75d7aab85b567b6ccd41ad312451b948a7413f0a142fd40d49347"
"""keccak of the RLP of an empty list."""
PRE_ROOT = "db7a033ad7abf89babd57e33b7418b078e46bbf99a539a80a80b642625f2b55a"
"""State root of the accounts before the transaction; same source."""


def filled(network, **options):
    """Return a state test with the right hashes."""
    fixture = state_fixture(network, **options)
    for entry in fixture["post"][network]:
        entry["hash"] = f"0x{ROOTS[network][entry['indexes']['value']]}"
        entry["logs"] = f"0x{LOGS}"
    return fixture


def run(fixture):
    """Run all entries, and return their number."""
    entries = list(state_subtests(fixture))
    for _, network, index in entries:
        run_state_test(fixture, network, index)
    return len(entries)


def check_mismatch(fixture, text):
    with pytest.raises(Mismatch, match=re.escape(text)):
        run(fixture)


@pytest.mark.parametrize("network", ROOTS)
def test_every_choice_gives_geths_root_and_logs(network):
    fixture = filled(network)
    assert run(fixture) == 4


def test_entries_are_named_after_their_choices():
    labels = [label for label, _, _ in state_subtests(filled("Cancun"))]
    assert labels[0] == "[Cancun d0 g0 v0]"
    assert labels[-1] == "[Cancun d0 g1 v1]"


def test_a_wrong_root_is_reported():
    fixture = filled("Cancun")
    fixture["post"]["Cancun"][2]["hash"] = f"0x{'11' * 32}"
    check_mismatch(fixture, f"post-state root: expected 0x{'11' * 32}, got 0x4a57")


def test_a_wrong_logs_hash_is_reported():
    fixture = filled("Cancun")
    fixture["post"]["Cancun"][3]["logs"] = f"0x{NO_LOGS}"
    check_mismatch(fixture, f"logs hash: expected 0x{NO_LOGS}, got 0x{LOGS}")


def test_a_wrong_account_is_reported_before_the_root():
    fixture = filled("Cancun")
    entry = fixture["post"]["Cancun"][0]
    entry["hash"] = f"0x{'11' * 32}"
    entry["state"] = {f"0x{KEEPER.hex()}": account(storage={0: 1, 1: 9})}
    check_mismatch(fixture, f"account 0x{KEEPER.hex()}, code: expected b''")


def test_an_accepted_transaction_that_should_be_rejected_is_reported():
    fixture = filled("Cancun", exception="TransactionException.X")
    check_mismatch(fixture, "was accepted; expected TransactionException.X")


@pytest.mark.parametrize(
    ("network", "change"),
    [
        ("Cancun", {"nonce": "0x1"}),
        ("Cancun", {"gasLimit": ["0x5208", "0x5207"], "data": ["0x01"]}),
        ("Cancun", {"gasLimit": ["0x1000001", "0x1000001"]}),
        ("Cancun", {"gasPrice": "0x6"}),
        ("Cancun", {"value": ["0x8ac7230489e80000000", "0xffffffffffffffffffff"]}),
        ("Cancun", {"value": [f"0x{'ff' * 32}", f"0x:bigint 0x1{'00' * 32}"]}),
        ("Berlin", {"maxFeePerGas": "0xa", "maxPriorityFeePerGas": "0x0"}),
        ("Cancun", {"maxFeePerGas": "0x8", "maxPriorityFeePerGas": "0x9"}),
        ("Istanbul", {"accessLists": [[]]}),
        (
            "Cancun",
            {
                "maxFeePerGas": "0xa",
                "maxPriorityFeePerGas": "0x0",
                "maxFeePerBlobGas": "0x1",
                "blobVersionedHashes": [f"0x01{'00' * 31}"] * 7,
            },
        ),
        (
            "Osaka",
            {
                "maxFeePerGas": "0xa",
                "maxPriorityFeePerGas": "0x0",
                "authorizationList": [],
            },
        ),
    ],
)
def test_invalid_transactions_leave_the_state_as_it_was(network, change):
    fixture = filled(network, exception="TransactionException.X", **change)
    unchanged = filled(network)
    for entry in fixture["post"][network]:
        entry["hash"], entry["logs"] = f"0x{PRE_ROOT}", f"0x{NO_LOGS}"
    assert run(fixture) == 4
    fixture["post"][network][0]["hash"] = unchanged["post"][network][0]["hash"]
    check_mismatch(fixture, "post-state root: expected")
    del fixture["post"][network][0]["expectException"]
    check_mismatch(fixture, "the transaction was rejected: ")


def test_the_bytes_of_the_transaction_go_before_its_fields():
    fixture = filled("Cancun")
    fields = fixture["transaction"]
    for entry in fixture["post"]["Cancun"]:
        signed = sign_transaction(
            {
                "nonce": 0,
                "gas": 150_000,
                "gas_price": 10,
                "to": KEEPER,
                "value": entry["indexes"]["value"],
            },
            SECRET,
        )
        entry["txbytes"] = f"0x{signed.raw.hex()}"
    del fields["secretKey"]
    fields["value"] = ["0x7", "0x8"]
    assert run(fixture) == 4
    fixture["post"]["Cancun"][0]["txbytes"] = "0x02c0"
    check_mismatch(fixture, "the transaction was rejected: a transaction of this type")


def test_a_transaction_without_a_possible_signer_is_an_unknown_format():
    fixture = filled("Cancun")
    del fixture["transaction"]["secretKey"]
    with pytest.raises(UnknownFormat, match="neither txbytes nor secretKey"):
        run(fixture)


def test_block_hashes_are_those_that_state_tests_assume():
    """BLOCKHASH of block 0 is keccak("0"), which fixtures state as `previousHash`."""
    previous = "044852b2a670ade5407e78fb2863c51de9fcb96542a07186fe3aeda6bb8a116d"
    fixture = filled("Cancun")
    code = bytes.fromhex("6000405f5500")  # BLOCKHASH(0) into slot 0
    fixture["pre"][f"0x{KEEPER.hex()}"] = account(code=code)
    entry = fixture["post"]["Cancun"][0]
    entry["state"] = {f"0x{KEEPER.hex()}": account(code=code, storage={0: 1})}
    check_mismatch(fixture, f"slot 0x0: expected 0x1, got {hex(int(previous, 16))}")
