"""`eth_`: accounts after a given block.

Source: go-ethereum internal/ethapi/api.go; reth crates/rpc/rpc-eth-api/src/core.rs for
eth_getAccount and eth_getAccountInfo
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from evm.changes import AccountValue
from evm.headers import EMPTY_TRIE_ROOT
from evm.world import EMPTY_CODE_HASH
from jsonrpc.later import Later
from jsonrpc.params import Param
from nodeapi.encoding import (
    LATEST,
    BlockReference,
    address,
    block_number_or_hash,
    data,
    quantity,
)
from nodeapi.methods.catalog import registry
from nodeapi.methods.context import Context
from nodeapi.schemas.building import named
from nodeapi.schemas.state import ACCOUNT_INFO, ACCOUNT_OR_NULL
from nodeapi.schemas.values import ADDRESS, BLOCK_PARAMETER, DATA, QUANTITY

_ADDRESS = Param("address", address, ADDRESS)
STATE_BLOCK = Param(
    "block",
    block_number_or_hash,
    BLOCK_PARAMETER,
    required=False,
    default=LATEST,
    summary="The block after which the state is read; latest by default. The state at "
    "pending is that at latest.",
)
_NONCE_BLOCK = Param(
    "block",
    block_number_or_hash,
    BLOCK_PARAMETER,
    required=False,
    default=LATEST,
    summary="The block after which the nonce is read; latest by default. At pending, the "
    "pending transactions of the upstream nodes count as well.",
)
_NO_ACCOUNT = AccountValue(0, 0, EMPTY_CODE_HASH, EMPTY_TRIE_ROOT)


@registry.method(
    "eth_getBalance",
    params=[_ADDRESS, STATE_BLOCK],
    encode=quantity,
    result=named("balance", QUANTITY),
    summary="Returns the balance of an account in wei.",
)
def get_balance(context: Context, account: bytes, block: BlockReference) -> Later[int]:
    """Return a balance in wei, 0 if the account does not exist."""
    found = context.store.account(context.network.id, account, block)
    return found.then(_balance)


@registry.method(
    "eth_getCode",
    params=[_ADDRESS, STATE_BLOCK],
    encode=data,
    result=named("code", DATA),
    summary="Returns the code of a contract, or the delegation of an account.",
)
def get_code(context: Context, account: bytes, block: BlockReference) -> Later[bytes]:
    """Return code, empty if there is none. A delegation is 0xef0100 and an address."""
    return context.store.code(context.network.id, account, block)


@registry.method(
    "eth_getTransactionCount",
    params=[_ADDRESS, _NONCE_BLOCK],
    encode=quantity,
    result=named("nonce", QUANTITY),
    summary="Returns the nonce of an account: the number of transactions it has sent, "
    "or of contracts it has created.",
)
def get_transaction_count(
    context: Context, account: bytes, block: BlockReference
) -> Later[int]:
    """Return a nonce, 0 if the account does not exist.

    At pending, it is the next nonce after the transactions that upstreams or the local
    pool have.
    """
    found = context.store.account(context.network.id, account, block).then(_nonce)
    if block.tag == "pending" and (relay := context.relay) is not None:
        pending = relay.pending_nonce(context.network, account, context.payer)
        return Later.from_coroutine(_highest(found, pending))
    return found


async def _highest(stored: Later[int], pending: Coroutine[Any, Any, int]) -> int:
    """Return the higher one of two nonces. Upstreams may lag behind the head."""
    return max(await pending, await stored)


@registry.method(
    "eth_getAccount",
    params=[_ADDRESS, STATE_BLOCK],
    result=named("account", ACCOUNT_OR_NULL),
    summary="Returns nonce, balance, code hash and storage root of an account, null "
    "when it does not exist.",
)
def get_account(
    context: Context, account: bytes, block: BlockReference
) -> Later[bytes | None]:
    """Return an account as its leaf in the state trie has it."""
    return context.store.account(context.network.id, account, block).then(_leaf)


@registry.method(
    "eth_getAccountInfo",
    params=[_ADDRESS, STATE_BLOCK],
    result=named("account", ACCOUNT_INFO),
    summary="Returns nonce, balance and code of an account.",
)
async def get_account_info(
    context: Context, account: bytes, block: BlockReference
) -> bytes:
    """Return an account with its code. An account that does not exist is empty."""
    store, network_id = context.store, context.network.id
    if block.hash is None:
        # Both parts are read at the same block, even if the head changes in between.
        block_hash = await store.state_hash(network_id, block)
        block = BlockReference(hash=block_hash)
    found = await store.account(network_id, account, block) or _NO_ACCOUNT
    code = await store.code(network_id, account, block)
    return b'{"balance":%b,"nonce":%b,"code":%b}' % (
        quantity(found.balance),
        quantity(found.nonce),
        data(code),
    )


def _balance(account: AccountValue | None) -> int:
    return 0 if account is None else account.balance


def _nonce(account: AccountValue | None) -> int:
    return 0 if account is None else account.nonce


def _leaf(account: AccountValue | None) -> bytes | None:
    if account is None:
        return None
    return b'{"balance":%b,"codeHash":%b,"nonce":%b,"storageRoot":%b}' % (
        quantity(account.balance),
        data(account.code_hash),
        quantity(account.nonce),
        data(account.storage_root or EMPTY_TRIE_ROOT),
    )
