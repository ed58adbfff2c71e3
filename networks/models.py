"""Networks, the host names that select them, and the nodes that they follow."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.core.validators import (
    MaxValueValidator,
    MinValueValidator,
    RegexValidator,
)
from django.db import models
from django.utils import timezone

from legible.fields import NameField
from networks.masking import mask_url
from networks.validators import validate_headers, validate_upstream_url

MAX_UPSTREAMS = 16
"""Maximum number of upstreams of a network."""

HISTORY_BLOCKS = 8192
"""Default number of blocks below a checkpoint that are stored."""


class Tracer(models.TextChoices):
    """A tracer that a network can offer. The values are the names in requests."""

    CALL = "callTracer", "callTracer"
    PRESTATE = "prestateTracer", "prestateTracer"
    FLAT_CALL = "flatCallTracer", "flatCallTracer"
    FOUR_BYTE = "4byteTracer", "4byteTracer"
    MUX = "muxTracer", "muxTracer"
    NOOP = "noopTracer", "noopTracer"
    KECCAK256_PREIMAGE = "keccak256PreimageTracer", "keccak256PreimageTracer"
    ERC7562 = "erc7562Tracer", "erc7562Tracer"
    STRUCT_LOG = "structLog", "struct logger (when no tracer is named)"
    JAVASCRIPT = "javascript", "JavaScript (custom tracers)"


def tracer_choices() -> list[tuple[str, str]]:
    """Return the choices of a field with names of tracers.

    Migrations contain the name of this function, not the choices, so that a new tracer
    needs no migration.
    """
    return Tracer.choices


def all_tracers() -> list[str]:
    """Return the names of all tracers. A new network offers all of them."""
    return list(Tracer.values)


class NetworkState(models.TextChoices):
    """Whether customers see a network, and whether requests to it are answered.

    The provider chooses it. A network that is preparing is not shown in any state.
    """

    VISIBLE = "visible", "visible"
    HIDDEN = "hidden", "hidden"
    RETIRED = "retired", "retired"


class NetworkQuerySet(models.QuerySet["Network"]):
    """Queries of networks."""

    def visible(self) -> NetworkQuerySet:
        """Return the networks that customers see."""
        return self.filter(state=NetworkState.VISIBLE, is_preparing=False)


class Network(models.Model):
    """A served chain, with the genesis.json that configures its forks.

    Customers' pages and the documentation list visible networks only. Requests to hidden
    networks are answered. A retired network is not followed, and requests to it are
    rejected. While a network is preparing, customers do not see it, and only a few
    methods are answered.
    """

    slug = models.SlugField(
        unique=True,
        validators=[
            RegexValidator(
                r"^[a-z0-9][a-z0-9-]*\Z",
                "Use lower-case letters, digits and hyphens, without a hyphen at the "
                "beginning.",
            )
        ],
        help_text="Part of the endpoint URL: /SLUG/v3/API_KEY.",
    )
    name = NameField(max_length=100, help_text="Name of the network on pages.")
    state = models.CharField(
        max_length=16,
        choices=NetworkState.choices,
        default=NetworkState.VISIBLE,
        db_default=NetworkState.VISIBLE,
        editable=False,
        help_text="Whether customers see the network, and requests are answered.",
    )
    is_preparing = models.BooleanField(
        "preparing",
        default=False,
        db_default=False,
        editable=False,
        help_text="Whether the network is being imported for the first time. It ends "
        "when the head is within 2 blocks of the upstreams' head, or with the end of an "
        "imported file, and never begins again.",
    )
    chain_id = models.PositiveBigIntegerField(help_text="EIP-155 chain id.")
    genesis = models.JSONField(
        help_text="geth's genesis.json with its config, without the alloc, "
        "which is the state of block 0."
    )
    genesis_hash = models.BinaryField(max_length=32)
    tracers = ArrayField(
        models.CharField(max_length=32, choices=tracer_choices),
        default=all_tracers,
        blank=True,
        help_text="Tracers that keys with an entitlement for tracing can use on this "
        "network.",
    )
    emit_total_difficulty = models.BooleanField(
        default=True,
        help_text="Whether block objects contain totalDifficulty. geth removed it in "
        "version 1.14.12, but many clients still read it.",
    )
    agree = models.PositiveSmallIntegerField(
        default=1,
        db_default=1,
        validators=[MinValueValidator(1), MaxValueValidator(MAX_UPSTREAMS)],
        help_text="Number of upstreams that have to report a head or finalized block "
        "before the follower accepts it.",
    )
    keep_side_blocks = models.PositiveIntegerField(
        null=True,
        blank=True,
        help_text="Side blocks are deleted when they are this many blocks below the "
        "finalized block. Empty: they are never deleted.",
    )
    keep_proofs = models.PositiveIntegerField(
        null=True,
        blank=True,
        default=0,
        db_default=0,
        help_text="Number of blocks below the head for which trie nodes are kept, so "
        "that eth_getProof only has to read them. 0: none are kept, and proofs at older "
        "blocks are computed for each request. Empty: they are kept for all blocks from "
        "now on.",
    )
    public_explorer = models.BooleanField(
        "public explorer",
        default=False,
        db_default=False,
        help_text="Whether blocks, transactions and addresses under /explore/ are shown "
        "to everyone. Calls and state changes are only shown to customers with an "
        "entitlement for tracing, and to staff.",
    )
    checkpoint_number = models.BigIntegerField(
        null=True,
        editable=False,
        help_text="Number of the trusted block at which the network started, whose state "
        "is known only as far as it was proved. None: block 0, whose state is complete.",
    )
    checkpoint_hash = models.BinaryField(max_length=32, null=True, editable=False)
    history_blocks = models.PositiveIntegerField(
        default=HISTORY_BLOCKS,
        db_default=HISTORY_BLOCKS,
        editable=False,
        help_text="Number of blocks below the checkpoint that are stored. At least the "
        "255 ancestors that later blocks can name are stored.",
    )
    oldest_number = models.BigIntegerField(
        null=True,
        editable=False,
        help_text="Number of the oldest stored block but block 0, if the network started "
        "at a checkpoint. None: no block between them is missing.",
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

    objects = NetworkQuerySet.as_manager()

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return self.slug

    @property
    def is_visible(self) -> bool:
        """Whether customers see the network."""
        return self.state == NetworkState.VISIBLE and not self.is_preparing

    @property
    def oldest_blocks(self) -> dict[str, int] | None:
        """The numbers of the oldest blocks with each kind of data.

        None if the network started at block 0, so that it has everything from there on.
        """
        checkpoint = self.checkpoint_number
        if checkpoint is None:
            return None
        oldest = checkpoint if self.oldest_number is None else self.oldest_number
        oldest = 0 if oldest == 1 else oldest  # block 0 is stored as well
        return {
            "blocks": oldest,
            "logs": oldest,
            "state": checkpoint,
            "traces": checkpoint + 1,
        }

    @property
    def oldest_by_proofs(self) -> dict[str, int] | None:
        """The numbers of the oldest blocks whose data an upstream with old states proves.

        None if the network started at block 0.
        """
        oldest = self.oldest_blocks
        if oldest is None:
            return None
        return {"state": oldest["blocks"], "traces": oldest["blocks"] + 1}

    @property
    def state_text(self) -> str:
        """The state as text: `preparing` if that hides the network, otherwise the state."""
        if self.is_preparing and self.state == NetworkState.VISIBLE:
            return "preparing"
        suffix = ", preparing" if self.is_preparing else ""
        return f"{NetworkState(self.state).label}{suffix}"

    def clean(self) -> None:
        """Reject a slug that requests could not use, and unknown total difficulties."""
        if self.slug in ("v3", "ws"):
            raise ValidationError(
                {"slug": f"{self.slug} is reserved, because it is part of other URLs."}
            )
        if self.emit_total_difficulty and self.checkpoint_number is not None:
            from evm.public import final_total_difficulty  # loads a part of the EVM

            if final_total_difficulty(bytes(self.genesis_hash)) is None:
                text = (
                    "The network has started at a checkpoint, so that the total "
                    "difficulty of its blocks is not known."
                )
                raise ValidationError({"emit_total_difficulty": text})


class NetworkDeletion(models.Model):
    """The deletion of a network in the background. The row is kept as a record.

    `nodeapi.deletion` creates and finishes it.
    """

    network = models.OneToOneField(
        Network,
        null=True,
        editable=False,
        on_delete=models.SET_NULL,
        related_name="deletion",
        help_text="None: the network is deleted.",
    )
    slug = models.CharField(max_length=50, editable=False)
    name = NameField(max_length=100, editable=False)
    chain_id = models.PositiveBigIntegerField(editable=False)
    requested_by = models.CharField(
        max_length=254,
        blank=True,
        editable=False,
        help_text="Email address of the user. Empty: the command line.",
    )
    requested_at = models.DateTimeField(default=timezone.now, editable=False)
    updated_at = models.DateTimeField(
        null=True, editable=False, help_text="When rows were last deleted."
    )
    finished_at = models.DateTimeField(null=True, editable=False)
    tables = models.JSONField(
        default=list,
        editable=False,
        help_text="The progress of each table; see `nodeapi.deletion.progress`.",
    )

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"deletion of {self.slug}"


class HostName(models.Model):
    """A host name whose `/v3/<API_KEY>` serves one network."""

    network = models.ForeignKey(
        Network, on_delete=models.CASCADE, related_name="host_names"
    )
    name = models.CharField(
        max_length=253,
        unique=True,
        validators=[
            RegexValidator(
                r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?\Z",
                "Enter a host name in lower case, without scheme and port, such as "
                "mainnet.example.org.",
            )
        ],
        help_text="The network answers requests to /v3/API_KEY on this host.",
    )

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class Upstream(models.Model):
    """A node of the provider: a source of blocks, and a recipient of transactions.

    The URL and the headers may contain secrets. The URL is not unique in the database,
    because PostgreSQL's message about a duplicate would contain it; `networks.services`
    and the admin reject duplicates.
    """

    network = models.ForeignKey(
        Network, on_delete=models.CASCADE, related_name="upstreams"
    )
    url = models.CharField(
        "URL",
        max_length=500,
        validators=[validate_upstream_url],
        help_text="JSON-RPC URL with the scheme http, https, ws or wss. It may contain "
        "a secret, so it is only shown to staff who may change it.",
    )
    headers = models.JSONField(
        default=dict,
        blank=True,
        validators=[validate_headers],
        help_text="HTTP headers of each request, such as Authorization.",
    )
    position = models.PositiveSmallIntegerField(
        "order", default=0, help_text="Upstreams with lower numbers are used first."
    )
    is_enabled = models.BooleanField("enabled", default=True)
    note = NameField(max_length=200, blank=True, default="")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["position", "id"]

    def __str__(self) -> str:
        return mask_url(self.url)
