"""The history of all state as flat rows, and the trie that proves its newest root.

A row holds the value *after* its block, so that the value at block N is the newest
row at or below N: one index probe. Only the canonical chain stands here.
"""

from __future__ import annotations

from django.db import models

from networks.models import Network


class AccountVersion(models.Model):
    """An account after a block that changed it."""

    pk = models.CompositePrimaryKey("network_id", "address", "block_number")
    network = models.ForeignKey(
        Network, on_delete=models.CASCADE, related_name="+", db_index=False
    )
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
        max_length=32, null=True, help_text="None: the empty trie's."
    )

    class Meta:
        verbose_name = "account version"

    def __str__(self) -> str:
        return f"0x{bytes(self.address).hex()} after {self.block_number}"


class StorageVersion(models.Model):
    """A storage slot after a block that changed it."""

    pk = models.CompositePrimaryKey("network_id", "address", "slot", "block_number")
    network = models.ForeignKey(
        Network, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    address = models.BinaryField(max_length=20)
    slot = models.BinaryField(max_length=32, help_text="32 bytes, big-endian.")
    block_number = models.BigIntegerField()
    value = models.BinaryField(
        max_length=32, help_text="Big-endian without leading zeros; empty is zero."
    )

    class Meta:
        verbose_name = "storage version"

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
        return f"0x{bytes(self.hash).hex()}"


class TrieNode(models.Model):
    """A node of the head's state trie, or of one of its storage tries.

    Addressed by place, not by hash: a changed node replaces the old one, and nothing
    needs to be collected. Nodes shorter than 32 bytes stand inside their parent.
    """

    pk = models.CompositePrimaryKey("network_id", "owner", "path")
    network = models.ForeignKey(
        Network, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    owner = models.BinaryField(
        max_length=32,
        help_text="Empty: the state trie; keccak(address): that account's storage.",
    )
    path = models.BinaryField(
        max_length=64, help_text="The nibbles from the root to the node, one a byte."
    )
    node = models.BinaryField(help_text="RLP of the node.")

    def __str__(self) -> str:
        return f"{bytes(self.owner).hex() or 'state'}/{bytes(self.path).hex()}"
