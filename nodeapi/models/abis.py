"""Contract ABIs that staff and customers have uploaded."""

from __future__ import annotations

from django.db import models

from keys.models import User
from legible.fields import NameField
from networks.models import Network


class ContractAbi(models.Model):
    """An uploaded ABI, for the contract at one address or for all of a network."""

    network = models.ForeignKey(
        Network, on_delete=models.CASCADE, related_name="contract_abis"
    )
    owner = models.ForeignKey(
        User,
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="contract_abis",
        help_text="The names are only shown to this user and the members of their account. "
        "Empty: they are shown to everyone.",
    )
    address = models.BinaryField(
        max_length=20, help_text="Address of the contract. Empty: all contracts."
    )
    name = NameField(max_length=100)
    size = models.PositiveIntegerField(
        help_text="Number of functions, events and errors."
    )
    uploaded_by = models.ForeignKey(
        User, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    uploaded_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = "contract ABI"
        ordering = ["-id"]

    def __str__(self) -> str:
        return self.name


class AbiEntry(models.Model):
    """A function, an event or an error of an uploaded ABI."""

    abi = models.ForeignKey(
        ContractAbi, on_delete=models.CASCADE, related_name="entries"
    )
    key = models.BinaryField(
        max_length=32,
        help_text="Selector of a function or error, topic 0 of an event.",
    )
    line = models.TextField(help_text="The definition in Solidity's notation.")

    class Meta:
        verbose_name = "ABI entry"
        verbose_name_plural = "ABI entries"
        indexes = [models.Index(fields=["key", "abi"], name="abi_entry_key")]

    def __str__(self) -> str:
        return self.line[:100]
