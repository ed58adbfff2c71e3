"""Tables: blocks and transactions, the history of all state, the trie of the head."""

from nodeapi.models.blocks import Block, SideDiff, Transaction
from nodeapi.models.state import AccountVersion, Code, StorageVersion, TrieNode

__all__ = [
    "AccountVersion",
    "Block",
    "Code",
    "SideDiff",
    "StorageVersion",
    "Transaction",
    "TrieNode",
]
