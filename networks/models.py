"""Networks and the host names under which they answer."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.db import models


class Tracer(models.TextChoices):
    """A tracer that a network may offer; the values are the names on the wire."""

    CALL = "callTracer", "callTracer"
    PRESTATE = "prestateTracer", "prestateTracer"
    FLAT_CALL = "flatCallTracer", "flatCallTracer"
    FOUR_BYTE = "4byteTracer", "4byteTracer"
    MUX = "muxTracer", "muxTracer"
    NOOP = "noopTracer", "noopTracer"
    STRUCT_LOG = "structLog", "struct logger (when no tracer is named)"
    JAVASCRIPT = "javascript", "JavaScript (custom tracers)"


def all_tracers() -> list[str]:
    """Return every tracer's value: what a new network offers."""
    return list(Tracer.values)


class Network(models.Model):
    """One chain that is served, with what decides how its blocks are executed."""

    slug = models.SlugField(
        unique=True,
        validators=[RegexValidator(r"^[a-z0-9][a-z0-9-]*\Z", "lower case, digits, -")],
        help_text="Part of the base address: /SLUG/v3/API_KEY.",
    )
    name = models.CharField(max_length=100, help_text="What people call it.")
    chain_id = models.PositiveBigIntegerField(help_text="EIP-155 chain id.")
    genesis = models.JSONField(
        help_text="geth's genesis.json with its config, without the alloc, "
        "which is the state of block 0."
    )
    genesis_hash = models.BinaryField(max_length=32)
    tracers = ArrayField(
        models.CharField(max_length=32, choices=Tracer.choices),
        default=all_tracers,
        blank=True,
        help_text="Tracers offered to customers who may trace.",
    )
    emit_total_difficulty = models.BooleanField(
        default=True,
        help_text="Whether block objects carry totalDifficulty; geth dropped it "
        "in 1.14.12, many clients still read it.",
    )
    upstream_url = models.CharField(
        max_length=500,
        blank=True,
        default="",
        db_default="",  # for processes of the version before, which do not know it
        validators=[
            # Django's own validator knows no hosts without a dot, as containers have.
            RegexValidator(
                r"^https?://[^\s/?#]+[^\s]*\Z", "http:// or https://, a host"
            )
        ],
        help_text="JSON-RPC address of a node that passes transactions on to this "
        "chain: the wallet sends there what its users sign. Empty: it sends nothing. "
        "It may hold a secret, and is shown to staff alone.",
    )
    head_number = models.BigIntegerField(
        null=True, editable=False, help_text="Number of the newest canonical block."
    )
    head_hash = models.BinaryField(max_length=32, null=True, editable=False)
    safe_hash = models.BinaryField(
        max_length=32, null=True, editable=False, help_text="None: the head."
    )
    finalized_hash = models.BinaryField(
        max_length=32, null=True, editable=False, help_text="None: the head."
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return self.slug

    def clean(self) -> None:
        """Refuse a name under which no request could reach the network."""
        if self.slug == "v3":
            raise ValidationError({"slug": "v3 is part of every base address."})


class HostName(models.Model):
    """A host name whose `/v3/<API_KEY>` is one network."""

    network = models.ForeignKey(
        Network, on_delete=models.CASCADE, related_name="host_names"
    )
    name = models.CharField(
        max_length=253,
        unique=True,
        validators=[
            RegexValidator(
                r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?\Z", "a lower-case host, without port"
            )
        ],
    )

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name
