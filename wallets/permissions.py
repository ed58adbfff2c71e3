"""The methods that a wallet may grant, and the group of permissions of each.

Granted methods are always listed in the order of this module, whatever the order of the
request. Clients compare with MetaMask's order, which is the same.
Source: MetaMask's chain-agnostic-permission, scope/constants
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from enum import StrEnum

from wallets.scopes import ScopeObject


class Group(StrEnum):
    """A group of methods that a user allows with one checkbox."""

    READ = "read"
    SIGN = "sign"
    SEND = "send"
    NOTIFY = "notify"
    TRACE = "trace"


SUBSCRIPTION = "eth_subscription"
"""The one notification of EVM chains."""

_GROUPS = {
    "personal_sign": Group.SIGN,
    "eth_signTypedData_v4": Group.SIGN,
    "wallet_watchAsset": Group.READ,
    "wallet_sendCalls": Group.SEND,
    "wallet_getCallsStatus": Group.READ,
    "wallet_getCapabilities": Group.READ,
    "eth_sendTransaction": Group.SEND,
    "web3_clientVersion": Group.READ,
    "eth_subscribe": Group.NOTIFY,
    "eth_unsubscribe": Group.NOTIFY,
    "eth_blockNumber": Group.READ,
    "eth_call": Group.READ,
    "eth_chainId": Group.READ,
    "eth_estimateGas": Group.READ,
    "eth_feeHistory": Group.READ,
    "eth_gasPrice": Group.READ,
    "eth_getBalance": Group.READ,
    "eth_getBlockByHash": Group.READ,
    "eth_getBlockByNumber": Group.READ,
    "eth_getBlockTransactionCountByHash": Group.READ,
    "eth_getBlockTransactionCountByNumber": Group.READ,
    "eth_getCode": Group.READ,
    "eth_getFilterChanges": Group.READ,
    "eth_getFilterLogs": Group.READ,
    "eth_getLogs": Group.READ,
    "eth_getProof": Group.READ,
    "eth_getStorageAt": Group.READ,
    "eth_getTransactionByBlockHashAndIndex": Group.READ,
    "eth_getTransactionByBlockNumberAndIndex": Group.READ,
    "eth_getTransactionByHash": Group.READ,
    "eth_getTransactionCount": Group.READ,
    "eth_getTransactionReceipt": Group.READ,
    "eth_getUncleCountByBlockHash": Group.READ,
    "eth_getUncleCountByBlockNumber": Group.READ,
    "eth_newBlockFilter": Group.READ,
    "eth_newFilter": Group.READ,
    "eth_newPendingTransactionFilter": Group.READ,
    "eth_sendRawTransaction": Group.SEND,
    "eth_syncing": Group.READ,
    "eth_uninstallFilter": Group.READ,
    "wallet_addEthereumChain": Group.READ,
    # Methods that MetaMask does not grant.
    "debug_getModifiedAccountsByHash": Group.READ,
    "debug_getModifiedAccountsByNumber": Group.READ,
    "erigon_getHeaderByHash": Group.READ,
    "erigon_getHeaderByNumber": Group.READ,
    "ots_getApiLevel": Group.READ,
    "ots_getBlockDetails": Group.READ,
    "ots_getBlockDetailsByHash": Group.READ,
    "ots_getBlockTransactions": Group.READ,
    "ots_getContractCreator": Group.READ,
    "ots_getTransactionBySenderAndNonce": Group.READ,
    "ots_getTransactionError": Group.READ,
    "ots_hasCode": Group.READ,
    "ots_searchTransactionsAfter": Group.READ,
    "ots_searchTransactionsBefore": Group.READ,
    "eth_sendRawTransactionSync": Group.SEND,
    "debug_getRawBlock": Group.READ,
    "debug_getRawBlockAccessList": Group.READ,
    "eth_getBlockAccessList": Group.READ,
    "portcullis_getBlockAccessList": Group.READ,
    "debug_getRawHeader": Group.READ,
    "debug_getRawReceipts": Group.READ,
    "debug_getRawTransaction": Group.READ,
    "eth_baseFee": Group.READ,
    "eth_blobBaseFee": Group.READ,
    "eth_capabilities": Group.READ,
    "eth_config": Group.READ,
    "eth_createAccessList": Group.READ,
    "eth_fillTransaction": Group.READ,
    "eth_getAccount": Group.READ,
    "eth_getAccountInfo": Group.READ,
    "eth_getBlockReceipts": Group.READ,
    "eth_getHeaderByHash": Group.READ,
    "eth_getHeaderByNumber": Group.READ,
    "eth_getRawTransactionByBlockHashAndIndex": Group.READ,
    "eth_getRawTransactionByBlockNumberAndIndex": Group.READ,
    "eth_getRawTransactionByHash": Group.READ,
    "eth_getStorageValues": Group.READ,
    "eth_getUncleByBlockHashAndIndex": Group.READ,
    "eth_getUncleByBlockNumberAndIndex": Group.READ,
    "eth_maxPriorityFeePerGas": Group.READ,
    "eth_simulateV1": Group.READ,
    "net_version": Group.READ,
    "txpool_content": Group.READ,
    "txpool_contentFrom": Group.READ,
    "txpool_inspect": Group.READ,
    "txpool_status": Group.READ,
}

CHAIN_METHODS = tuple(name for name in _GROUPS if name != "wallet_addEthereumChain")
"""The methods that may be granted on an EVM chain, without traces.

Methods that show or change state of EIP-1193 that sessions do not have (eth_accounts,
wallet_switchEthereumChain, …) are not among them.
"""

SIGNING_METHODS = frozenset(
    {"personal_sign", "eth_signTypedData_v4", "wallet_sendCalls", "eth_sendTransaction"}
)
"""Methods that need the account's key; watch-only accounts can't use them."""

EVM_WALLET_METHODS = ("wallet_addEthereumChain",)
"""The methods that may be granted in the scope `wallet:eip155`."""


def group_of(method: str) -> Group:
    """Return the group that a method belongs to. Methods without an entry are traces."""
    return _GROUPS.get(method, Group.TRACE)


def groups_of(scopes: Iterable[ScopeObject]) -> frozenset[Group]:
    """Return the groups of all methods and notifications of scopes."""
    return frozenset(
        {group_of(method) for scope in scopes for method in scope.methods}
        | {Group.NOTIFY for scope in scopes if scope.notifications}
    )


def without_signing(scope: ScopeObject) -> ScopeObject:
    """Return a scope without the methods that need a key."""
    left = (name for name in scope.methods if name not in SIGNING_METHODS)
    return replace(scope, methods=tuple(left))


def only(scope: ScopeObject, groups: Iterable[Group]) -> ScopeObject:
    """Return a scope with the methods and notifications of some groups only."""
    allowed = frozenset(groups)
    return replace(
        scope,
        methods=tuple(name for name in scope.methods if group_of(name) in allowed),
        notifications=scope.notifications if Group.NOTIFY in allowed else (),
    )
