"""EEST's `blockchain_test_engine`: blocks as parameters of engine_newPayload.

There is no Engine API here, so the blocks are executed directly. A payload with an expected
`errorCode` tests that API alone and is left out.
Source: https://github.com/ethereum/execution-apis, src/engine
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eth_typing import Address, Hash32

from evm.blocks import Block, Withdrawal, decode_block
from evm.errors import InvalidBlock
from evm.headers import EMPTY_UNCLES_HASH, ZERO_NONCE, Header
from evm.requests import requests_hash
from evm.transactions import decode_transaction
from evm.trie import ordered_root
from tests.consensus.blockchain import check_insertion, compare_end
from tests.consensus.chain import TestChain
from tests.consensus.networks import chain_config
from tests.consensus.values import data, number, optional_data, optional_number
from tests.consensus.verdict import expect


def run_engine_test(fixture: Mapping[str, Any]) -> None:
    """Import the payloads of a fixture, and compare head and state at the end.

    Raises: Mismatch, UnknownNetwork.
    """
    config = chain_config(fixture["network"], fixture.get("config"))
    genesis = _genesis(fixture)
    chain = TestChain(config, genesis, fixture["pre"])
    for index, entry in enumerate(fixture["engineNewPayloads"], 1):
        if entry.get("errorCode"):
            continue
        params = entry["params"]

        def import_block(params: list[Any] = params) -> None:
            chain.insert(payload_block(*params))

        exception = entry.get("validationError") or ""
        check_insertion(f"payload {index}", import_block, exception)
    compare_end(chain, fixture)


def payload_block(
    payload: Mapping[str, Any],
    blob_hashes: list[str] | None = None,
    parent_beacon_root: str | None = None,
    requests: list[str] | None = None,
) -> Block:
    """Return the block of a payload.

    Raises: InvalidBlock when its hash or its blob hashes are not those that are stated;
    RlpError.
    """
    transactions = tuple(
        decode_transaction(data(raw)) for raw in payload["transactions"]
    )
    withdrawals = _withdrawals(payload.get("withdrawals"))
    header = Header(
        parent_hash=Hash32(data(payload["parentHash"])),
        uncles_hash=EMPTY_UNCLES_HASH,
        coinbase=Address(data(payload["feeRecipient"])),
        state_root=Hash32(data(payload["stateRoot"])),
        transactions_root=Hash32(ordered_root([one.raw for one in transactions])),
        receipts_root=Hash32(data(payload["receiptsRoot"])),
        logs_bloom=data(payload["logsBloom"]),
        difficulty=0,
        number=number(payload["blockNumber"]),
        gas_limit=number(payload["gasLimit"]),
        gas_used=number(payload["gasUsed"]),
        timestamp=number(payload["timestamp"]),
        extra_data=data(payload["extraData"]),
        mix_hash=Hash32(data(payload["prevRandao"])),
        nonce=ZERO_NONCE,
        base_fee_per_gas=number(payload["baseFeePerGas"]),
        withdrawals_root=None
        if withdrawals is None
        else Hash32(ordered_root([one.encode() for one in withdrawals])),
        blob_gas_used=optional_number(payload.get("blobGasUsed")),
        excess_blob_gas=optional_number(payload.get("excessBlobGas")),
        parent_beacon_root=_hash(parent_beacon_root),
        requests_hash=None
        if requests is None
        else requests_hash([data(one) for one in requests]),
    )
    _check(header, "block hash", data(payload["blockHash"]), header.hash)
    if blob_hashes is not None:
        found = [name for one in transactions for name in one.blob_versioned_hashes]
        stated = [data(name) for name in blob_hashes]
        _check(header, "blob versioned hashes", stated, found)
    return Block(header, transactions, withdrawals=withdrawals)


def _check(header: Header, field: str, stated: object, found: object) -> None:
    if stated != found:
        raise InvalidBlock(header, field, f"expected {found}, got {stated}")


def _withdrawals(entries: list[Mapping[str, Any]] | None) -> Any:
    if entries is None:
        return None
    return tuple(
        Withdrawal(
            number(entry["index"]),
            number(entry["validatorIndex"]),
            Address(data(entry["address"])),
            number(entry["amount"]),
        )
        for entry in entries
    )


def _hash(text: str | None) -> Hash32 | None:
    value = optional_data(text)
    return None if value is None else Hash32(value)


def _genesis(fixture: Mapping[str, Any]) -> Block:
    """Return block 0, from its RLP or from the fields of its header."""
    if fixture.get("genesisRLP"):
        return decode_block(data(fixture["genesisRLP"]))
    header = header_of_json(fixture["genesisBlockHeader"])
    expected = data(fixture["genesisBlockHeader"]["hash"])
    expect("genesis hash", expected, header.hash)
    return Block(header, withdrawals=None if header.withdrawals_root is None else ())


def header_of_json(fields: Mapping[str, Any]) -> Header:
    """Return a header of the names that fixtures give its fields."""
    return Header(
        parent_hash=Hash32(data(fields["parentHash"])),
        uncles_hash=Hash32(data(fields["uncleHash"])),
        coinbase=Address(data(fields["coinbase"])),
        state_root=Hash32(data(fields["stateRoot"])),
        transactions_root=Hash32(data(fields["transactionsTrie"])),
        receipts_root=Hash32(data(fields["receiptTrie"])),
        logs_bloom=data(fields["bloom"]),
        difficulty=number(fields["difficulty"]),
        number=number(fields["number"]),
        gas_limit=number(fields["gasLimit"]),
        gas_used=number(fields["gasUsed"]),
        timestamp=number(fields["timestamp"]),
        extra_data=data(fields["extraData"]),
        mix_hash=Hash32(data(fields["mixHash"])),
        nonce=data(fields["nonce"]),
        base_fee_per_gas=optional_number(fields.get("baseFeePerGas")),
        withdrawals_root=_hash(fields.get("withdrawalsRoot")),
        blob_gas_used=optional_number(fields.get("blobGasUsed")),
        excess_blob_gas=optional_number(fields.get("excessBlobGas")),
        parent_beacon_root=_hash(fields.get("parentBeaconBlockRoot")),
        requests_hash=_hash(fields.get("requestsHash")),
    )
