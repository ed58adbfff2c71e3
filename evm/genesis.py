"""Block 0, from a genesis.json in geth's format.

Numbers may be JSON numbers, decimal strings or hex strings. Hex of fixed length may
omit 0x.

Source: go-ethereum core/genesis.go, core/types/account.go
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING

from eth_typing import Address, Hash32

from evm.blocks import Block
from evm.headers import (
    EMPTY_TRIE_ROOT,
    EMPTY_UNCLES_HASH,
    ZERO_HASH,
    Header,
)

if TYPE_CHECKING:
    from evm.chain_config import ChainConfig
    from evm.rules.fork import Fork

DEFAULT_GAS_LIMIT = 4_712_388
DEFAULT_DIFFICULTY = 131_072
INITIAL_BASE_FEE = 10**9
"""Wei. Base fee of London's first block, which may be the genesis block."""

EMPTY_REQUESTS_HASH = Hash32(sha256(b"").digest())
"""`requestsHash` of a block without requests (EIP-7685)."""

_HEX_DIGITS = re.compile(r"(?:0x)?([0-9a-fA-F]*)")


EXCESS_BITS = 36
"""Maximum number of bits of the genesis block's excess blob gas. With 2**36, the base
fee has thousands of digits. Each additional bit doubles the number of digits. Blocks
can't reach such values."""


class GenesisError(ValueError):
    """Raised for an invalid genesis.json. The message names the invalid member."""


@dataclass(frozen=True, slots=True)
class GenesisAccount:
    """An account of block 0."""

    balance: int
    """Wei."""
    nonce: int = 0
    code: bytes = b""
    storage: dict[int, int] = field(default_factory=dict)
    """Slots that are not zero."""


def genesis_block(
    genesis: Mapping[str, object], config: ChainConfig, state_root: Hash32
) -> Block:
    """Return block 0.

    config: determines the active fork and thus the header's fields.
    state_root: the root of the state trie over `genesis_accounts`.

    Raises: GenesisError if a member is malformed or missing.
    """
    timestamp = _number(genesis, "timestamp", 0, 64)
    fork = config.genesis_fork(timestamp)
    base_fee = None
    if fork.has_base_fee:
        base_fee = _number(genesis, "baseFeePerGas", INITIAL_BASE_FEE)
    header = Header(
        parent_hash=Hash32(_fixed(genesis, "parentHash", 32)),
        uncles_hash=EMPTY_UNCLES_HASH,
        coinbase=Address(_fixed(genesis, "coinbase", 20)),
        state_root=state_root,
        transactions_root=EMPTY_TRIE_ROOT,
        receipts_root=EMPTY_TRIE_ROOT,
        logs_bloom=bytes(256),
        difficulty=_number(genesis, "difficulty", DEFAULT_DIFFICULTY),
        number=_number(genesis, "number", 0, 63),
        gas_limit=_number(genesis, "gasLimit", 0, 63) or DEFAULT_GAS_LIMIT,
        gas_used=_number(genesis, "gasUsed", 0, 63),
        timestamp=timestamp,
        extra_data=_data(genesis.get("extraData") or "0x", "extraData"),
        mix_hash=Hash32(_fixed(genesis, "mixHash", 32)),
        nonce=_number(genesis, "nonce", 0, 64).to_bytes(8, "big"),
        base_fee_per_gas=base_fee,
        withdrawals_root=EMPTY_TRIE_ROOT if fork.has_withdrawals else None,
        blob_gas_used=_blob_number(genesis, "blobGasUsed", fork),
        excess_blob_gas=_blob_number(genesis, "excessBlobGas", fork, EXCESS_BITS),
        parent_beacon_root=ZERO_HASH if fork.has_parent_beacon_root else None,
        requests_hash=EMPTY_REQUESTS_HASH if fork.has_requests else None,
        # The hash of an empty list is that of an empty list of uncles.
        block_access_list_hash=(
            EMPTY_UNCLES_HASH if fork.has_block_access_list else None
        ),
        slot_number=(
            _number(genesis, "slotNumber", 0, 64)
            if fork.has_block_access_list
            else None
        ),
    )
    return Block(header, withdrawals=() if fork.has_withdrawals else None)


def genesis_accounts(genesis: Mapping[str, object]) -> dict[Address, GenesisAccount]:
    """Return the accounts of block 0, including empty ones.

    Raises: GenesisError if an account is malformed.
    """
    alloc = genesis.get("alloc")
    if not isinstance(alloc, Mapping):
        raise GenesisError("alloc: expected an object of accounts by address")
    accounts: dict[Address, GenesisAccount] = {}
    for key, entry in alloc.items():
        where = f"alloc.{key}"
        address = Address(_data(key, where))
        if len(address) != 20:
            raise GenesisError(f"{where}: not an address of 20 bytes")
        if address in accounts:
            raise GenesisError(f"{where}: occurs twice")
        if not isinstance(entry, Mapping):
            raise GenesisError(f"{where}: expected an account object")
        accounts[address] = _account(entry, where)
    return accounts


def _account(entry: Mapping[str, object], where: str) -> GenesisAccount:
    storage = entry.get("storage") or {}
    if not isinstance(storage, Mapping):
        raise GenesisError(f"{where}.storage: expected an object of values by slot")
    words = {
        _word(slot, f"{where}.storage"): _word(value, f"{where}.storage.{slot}")
        for slot, value in storage.items()
    }
    return GenesisAccount(
        balance=_number(entry, "balance", 0, where=where),
        nonce=_number(entry, "nonce", 0, 64, where=where),
        code=_data(entry.get("code") or "0x", f"{where}.code"),
        storage={slot: value for slot, value in words.items() if value},
    )


def _number(
    fields: Mapping[str, object],
    name: str,
    default: int,
    bits: int = 256,
    where: str = "",
) -> int:
    """Return a field in any form of a number, or the default where it is absent."""
    value = fields.get(name)
    if value is None:
        return default
    number = -1
    if isinstance(value, int) and not isinstance(value, bool):
        number = value
    elif isinstance(value, str):
        digits, base = (value[2:], 16) if value[:2] in ("0x", "0X") else (value, 10)
        # int() would also accept signs, blanks and underscores.
        if digits.isascii() and digits.isalnum():
            try:
                number = int(digits, base)
            except ValueError:
                number = -1
    if not 0 <= number < 2**bits:
        place = f"{where}.{name}" if where else name
        raise GenesisError(f"{place}: {value!r} is not a number below 2**{bits}")
    return number


def _blob_number(
    genesis: Mapping[str, object], name: str, fork: Fork, bits: int = 64
) -> int | None:
    return _number(genesis, name, 0, bits) if fork.has_blobs else None


def _data(value: object, where: str) -> bytes:
    match = _HEX_DIGITS.fullmatch(value) if isinstance(value, str) else None
    if match is None or len(match[1]) % 2:
        raise GenesisError(f"{where}: {value!r} is not hexadecimal data")
    return bytes.fromhex(match[1])


def _fixed(genesis: Mapping[str, object], name: str, size: int) -> bytes:
    """Return a field of fixed size, zeros where it is absent."""
    value = genesis.get(name)
    if value is None:
        return bytes(size)
    data = _data(value, name)
    if len(data) != size:
        raise GenesisError(f"{name}: expected {size} bytes, not {len(data)}")
    return data


def _word(value: object, where: str) -> int:
    """Parse a storage slot or value: hex of at most 32 bytes, padded on the left."""
    match = _HEX_DIGITS.fullmatch(value) if isinstance(value, str) else None
    if match is None or len(match[1]) > 64:
        raise GenesisError(f"{where}: {value!r} is not a word of at most 32 bytes")
    return int(match[1] or "0", 16)
