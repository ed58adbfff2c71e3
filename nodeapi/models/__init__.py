"""Tables: blocks, transactions, trace records, logs, appearances, states, the trie.

And what the followers report, and the local pool.
"""

from nodeapi.models.abis import AbiEntry, ContractAbi
from nodeapi.models.blocks import (
    Block,
    BlockAccessList,
    SideDiff,
    Transaction,
    TransactionRecord,
)
from nodeapi.models.following import (
    FollowerStatus,
    ImportTiming,
    QuarantinedBlock,
    Reorganisation,
    UpstreamStatus,
)
from nodeapi.models.indexes import Appearance, Log
from nodeapi.models.pool import PooledTransaction
from nodeapi.models.state import (
    AccountVersion,
    Code,
    StorageVersion,
    TrieNode,
    TrieNodeVersion,
)

__all__ = [
    "AbiEntry",
    "AccountVersion",
    "Appearance",
    "Block",
    "BlockAccessList",
    "Code",
    "ContractAbi",
    "FollowerStatus",
    "ImportTiming",
    "Log",
    "PooledTransaction",
    "QuarantinedBlock",
    "Reorganisation",
    "SideDiff",
    "StorageVersion",
    "Transaction",
    "TransactionRecord",
    "TrieNode",
    "TrieNodeVersion",
    "UpstreamStatus",
]
