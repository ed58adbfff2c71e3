"""Fixtures in the published formats, from chains that the project's builder makes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from eth_typing import Address

from evm.blocks import Block, encode_block
from evm.headers import Header
from evm.signatures import address_of_key, keccak
from nodeapi.chain.memory_state import MemoryState
from samples.builder import ChainBuilder
from samples.signers import Signer
from samples.system_contracts import system_contracts_alloc
from tests.consensus.networks import genesis_config

ALICE, BOB = Signer("alice"), Signer("bob")

KEEPER = Address(bytes.fromhex("00000000000000000000000000000000000c0de0"))
KEEPER_CODE = bytes.fromhex("4360005542600155600a60006000a100")
"""Stores block number and time in slots 0 and 1, and logs with the topic 10."""

BALANCE = 10**20

SECRET = keccak(b"sender of state tests")
"""Private key of the account that sends the transactions of state tests."""


def accounts() -> dict[str, Any]:
    """Return the accounts that the chains start with, in the form of `pre`."""
    return {
        f"0x{ALICE.address.hex()}": account(balance=BALANCE),
        f"0x{address_of_key(SECRET).hex()}": account(balance=BALANCE),
        f"0x{KEEPER.hex()}": account(code=KEEPER_CODE),
        **{
            address: {**entry, "storage": {}}
            for address, entry in system_contracts_alloc().items()
        },
    }


def account(
    *,
    balance: int = 0,
    nonce: int = 0,
    code: bytes = b"",
    storage: Mapping[int, int] | None = None,
) -> dict[str, Any]:
    """Return an account in the form of `pre` and `postState`."""
    slots = {_word(slot): _word(value) for slot, value in (storage or {}).items()}
    return {
        "balance": hex(balance),
        "nonce": hex(nonce),
        "code": f"0x{code.hex()}",
        "storage": slots,
    }


def new_chain(network: str, *, seconds_per_block: int = 12) -> ChainBuilder:
    """Return a chain of the network with the accounts above."""
    config = genesis_config(network)
    is_merged = config.get("terminalTotalDifficulty") == 0
    return ChainBuilder(
        {
            "config": config,
            "alloc": accounts(),
            "timestamp": "0x0",
            "gasLimit": hex(30_000_000),
            "difficulty": "0x0" if is_merged else "0x20000",
        },
        seconds_per_block,
    )


def blockchain_fixture(
    network: str, chain: ChainBuilder, blocks: Sequence[Block] | None = None
) -> dict[str, Any]:
    """Return a BlockchainTest of a chain's blocks, which are all valid."""
    return {
        "_info": {"comment": "generated"},
        "network": network,
        "sealEngine": "NoProof",
        "pre": accounts(),
        "genesisBlockHeader": header_fields(chain.genesis.header),
        "genesisRLP": _hex(encode_block(chain.genesis)),
        "blocks": [block_entry(block) for block in blocks or chain.blocks],
        "lastblockhash": _hex(chain.head.hash),
        "postState": account_fields(chain.state, [ALICE.address, BOB.address, KEEPER]),
    }


def block_entry(block: Block) -> dict[str, Any]:
    """Return a valid block as an entry of `blocks`."""
    return {
        "rlp": _hex(encode_block(block)),
        "blockHeader": header_fields(block.header),
    }


def invalid_entry(block: Block, exception: str) -> dict[str, Any]:
    """Return a block that must be rejected as an entry of `blocks`."""
    return {"rlp": _hex(encode_block(block)), "expectException": exception}


def payload_entry(block: Block, error: str = "") -> dict[str, Any]:
    """Return a block of Cancun or later as an entry of `engineNewPayloads`."""
    header = block.header
    payload = {
        "parentHash": _hex(header.parent_hash),
        "feeRecipient": _hex(header.coinbase),
        "stateRoot": _hex(header.state_root),
        "receiptsRoot": _hex(header.receipts_root),
        "logsBloom": _hex(header.logs_bloom),
        "blockNumber": hex(header.number),
        "gasLimit": hex(header.gas_limit),
        "gasUsed": hex(header.gas_used),
        "timestamp": hex(header.timestamp),
        "extraData": _hex(header.extra_data),
        "prevRandao": _hex(header.mix_hash),
        "baseFeePerGas": hex(header.base_fee_per_gas or 0),
        "blobGasUsed": hex(header.blob_gas_used or 0),
        "excessBlobGas": hex(header.excess_blob_gas or 0),
        "blockHash": _hex(header.hash),
        "transactions": [_hex(one.raw) for one in block.transactions],
        "withdrawals": [],
    }
    root = _hex(header.parent_beacon_root or b"")
    names = [_hex(n) for one in block.transactions for n in one.blob_versioned_hashes]
    params: list[Any] = [payload, names, root]
    if header.requests_hash is not None:
        params.append([])
    entry: dict[str, Any] = {"params": params, "newPayloadVersion": "4"}
    return {**entry, "validationError": error} if error else entry


def header_fields(header: Header) -> dict[str, Any]:
    """Return a header in the form of `blockHeader`."""
    fields: dict[str, Any] = {
        "parentHash": header.parent_hash,
        "uncleHash": header.uncles_hash,
        "coinbase": header.coinbase,
        "stateRoot": header.state_root,
        "transactionsTrie": header.transactions_root,
        "receiptTrie": header.receipts_root,
        "bloom": header.logs_bloom,
        "difficulty": header.difficulty,
        "number": header.number,
        "gasLimit": header.gas_limit,
        "gasUsed": header.gas_used,
        "timestamp": header.timestamp,
        "extraData": header.extra_data,
        "mixHash": header.mix_hash,
        "nonce": header.nonce,
        "hash": header.hash,
        "baseFeePerGas": header.base_fee_per_gas,
        "withdrawalsRoot": header.withdrawals_root,
        "blobGasUsed": header.blob_gas_used,
        "excessBlobGas": header.excess_blob_gas,
        "parentBeaconBlockRoot": header.parent_beacon_root,
        "requestsHash": header.requests_hash,
    }
    return {
        name: hex(value) if isinstance(value, int) else _hex(value)
        for name, value in fields.items()
        if value is not None
    }


def account_fields(state: MemoryState, addresses: Sequence[Address]) -> dict[str, Any]:
    """Return accounts of a state in the form of `postState`."""
    shown = {}
    for address in addresses:
        found = state.account(address)
        if found is None:
            continue
        slots = {
            slot: state.storage(address, slot) for slot in state.live_slots(address)
        }
        shown[f"0x{address.hex()}"] = account(
            balance=found.balance,
            nonce=found.nonce,
            code=KEEPER_CODE if address == KEEPER else b"",
            storage=slots,
        )
    return shown


def _word(value: int) -> str:
    return _hex(value.to_bytes(32, "big"))


def _hex(value: bytes) -> str:
    return f"0x{value.hex()}"


def state_fixture(
    network: str, *, exception: str = "", **transaction: Any
) -> dict[str, Any]:
    """Return a state test: ALICE calls KEEPER, with two choices of gas and of value.

    exception: expected of every choice. transaction: fields that replace the usual.
    The expected hashes are zero: `evm statetest` or this runner report the right ones.
    """
    indexes = [(0, gas, value) for gas in (0, 1) for value in (0, 1)]
    entry = {"hash": _hex(bytes(32)), "logs": _hex(bytes(32))}
    if exception:
        entry["expectException"] = exception
    return {
        "_info": {"comment": "generated"},
        "env": {
            "currentCoinbase": f"0x{BOB.address.hex()}",
            "currentDifficulty": "0x20000",
            "currentGasLimit": "0x1000000",
            "currentNumber": "0x1",
            "currentTimestamp": "0x3e8",
            "currentBaseFee": "0x7",
            "currentRandom": hex(0x20000),
            "currentExcessBlobGas": "0x0",
        },
        "pre": accounts(),
        "transaction": {
            "data": ["0x"],
            "gasLimit": ["0x249f0", "0x186a0"],
            "value": ["0x0", "0x1"],
            "gasPrice": "0xa",
            "nonce": "0x0",
            "to": f"0x{KEEPER.hex()}",
            "secretKey": _hex(SECRET),
            "sender": f"0x{address_of_key(SECRET).hex()}",
            **transaction,
        },
        "post": {
            network: [
                {**entry, "indexes": {"data": data, "gas": gas, "value": value}}
                for data, gas, value in indexes
            ]
        },
    }
