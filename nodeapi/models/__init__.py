"""Tables: blocks, transactions and their records, the history of all state, the trie."""

from nodeapi.models.blocks import Block, SideDiff, Transaction
from nodeapi.models.records import TransactionRecord
from nodeapi.models.state import AccountVersion, Code, StorageVersion, TrieNode

__all__ = [
    "AccountVersion",
    "Block",
    "Code",
    "SideDiff",
    "StorageVersion",
    "Transaction",
    "TransactionRecord",
    "TrieNode",
]
