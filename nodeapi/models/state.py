"""The history of the state as rows, and the trie of the head's state.

A row contains a value after its block. The value at block N is that of the newest row at
or below N, which one index look-up finds. Only the canonical chain has rows.
"""

from __future__ import annotations

from django.contrib.postgres.indexes import BrinIndex
from django.db import models

from evm.hexadecimal import to_hex
from networks.models import Network


def _network_key() -> models.ForeignKey[Network, Network]:
    """Return a foreign key to the row's network, without a database constraint.

    A constraint would be checked for each of the thousands of rows of a block, all of
    them of the importer's own network.
    """
    return models.ForeignKey(
        Network,
        on_delete=models.CASCADE,
        related_name="+",
        db_index=False,
        db_constraint=False,
    )


class AccountVersion(models.Model):
    """An account after a block that changed it."""

    pk = models.CompositePrimaryKey("network_id", "address", "block_number")
    network = _network_key()
    address = models.BinaryField(max_length=20)
    block_number = models.BigIntegerField()
    nonce = models.DecimalField(
        max_digits=20, decimal_places=0, null=True, help_text="None: no account."
    )
    balance = models.DecimalField(
        max_digits=78, decimal_places=0, null=True, help_text="Wei."
    )
    code_hash = models.BinaryField(max_length=32, null=True, help_text="None: no code.")
    storage_root = models.BinaryField(
        max_length=32, null=True, help_text="None: the root of the empty trie."
    )

    class Meta:
        verbose_name = "account version"
        # Rows are inserted in the order of blocks. Therefore a BRIN index, which costs
        # almost nothing, finds the rows of the blocks that a reorganisation removes.
        indexes = [
            BrinIndex(
                fields=["block_number"],
                name="account_version_block",
                autosummarize=True,
            )
        ]

    def __str__(self) -> str:
        return f"0x{bytes(self.address).hex()} after {self.block_number}"


class StorageVersion(models.Model):
    """A storage slot after a block that changed it."""

    pk = models.CompositePrimaryKey("network_id", "address", "slot", "block_number")
    network = _network_key()
    address = models.BinaryField(max_length=20)
    slot = models.BinaryField(max_length=32, help_text="32 bytes, big-endian.")
    block_number = models.BigIntegerField()
    value = models.BinaryField(
        max_length=32, help_text="Big-endian without leading zeros; empty is zero."
    )

    class Meta:
        verbose_name = "storage version"
        indexes = [
            BrinIndex(
                fields=["block_number"],
                name="storage_version_block",
                autosummarize=True,
            )
        ]

    def __str__(self) -> str:
        return (
            f"0x{bytes(self.address).hex()}[0x{bytes(self.slot).hex()}] "
            f"after {self.block_number}"
        )


class Code(models.Model):
    """Contract code by its hash, of all networks together."""

    hash = models.BinaryField(primary_key=True, max_length=32)
    code = models.BinaryField()

    def __str__(self) -> str:
        return to_hex(self.hash)


class TrieNode(models.Model):
    """A node of the head's state trie, or of one of its storage tries.

    The key is the node's path and not its hash: a changed node replaces the old one,
    and no garbage remains. Nodes shorter than 32 bytes are part of their parent.
    """

    pk = models.CompositePrimaryKey("network_id", "owner", "path")
    network = _network_key()
    owner = models.BinaryField(
        max_length=32,
        help_text="Empty: the state trie; keccak(address): that account's storage.",
    )
    path = models.BinaryField(
        max_length=64, help_text="The nibbles from the root to the node, one per byte."
    )
    node = models.BinaryField(help_text="RLP of the node.")

    def __str__(self) -> str:
        return f"{bytes(self.owner).hex() or 'state'}/{bytes(self.path).hex()}"


class TrieNodeVersion(models.Model):
    """A trie node before a block that changed it, see `nodeapi.chain.node_versions`.

    Only networks that keep proofs have rows.
    """

    pk = models.CompositePrimaryKey("network_id", "owner", "path", "block_number")
    network = _network_key()
    owner = models.BinaryField(max_length=32, help_text="As in a trie node.")
    path = models.BinaryField(max_length=64, help_text="As in a trie node.")
    block_number = models.BigIntegerField()
    node = models.BinaryField(null=True, help_text="None: there was no node.")

    class Meta:
        verbose_name = "trie node version"
        indexes = [
            BrinIndex(
                fields=["block_number"],
                name="trie_node_version_block",
                autosummarize=True,
            )
        ]

    def __str__(self) -> str:
        owner = bytes(self.owner).hex() or "state"
        return f"{owner}/{bytes(self.path).hex()} before {self.block_number}"
