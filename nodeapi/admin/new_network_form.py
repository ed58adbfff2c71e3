"""The admin's form that adds a network."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from django import forms
from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator

from legible.fields import validate_name
from networks.models import HISTORY_BLOCKS, Network
from networks.upstream_forms import HeadersField
from networks.validators import parse_headers, validate_headers

if TYPE_CHECKING:
    from evm.public import PublicNetwork
    from networks.services import Checkpoint
    from nodeapi.new_network import Added, Addition

MAX_GENESIS_BYTES = 1_000_000
"""Maximum size of an uploaded genesis.json. Mainnet's has 700,000 bytes. A file in a request
of more than FILE_UPLOAD_MAX_MEMORY_SIZE does not reach the form."""


class NewNetworkForm(forms.Form):
    """A new network: a built-in or an uploaded genesis, and upstreams."""

    slug = forms.SlugField(
        max_length=50, help_text="Part of the endpoint URL: /SLUG/v3/API_KEY."
    )
    name = forms.CharField(max_length=100, validators=[validate_name])
    public = forms.ChoiceField(label="Built-in network", required=False)
    genesis = forms.FileField(
        label="genesis.json",
        required=False,
        help_text="A genesis file in geth's format, at most 1 MB.",
    )
    upstreams = forms.CharField(
        label="URLs of upstreams",
        required=False,
        max_length=10_000,
        widget=forms.Textarea(
            attrs={"rows": 3, "autocomplete": "off", "spellcheck": "false"}
        ),
        help_text="One per line, with the scheme http, https, ws or wss.",
    )
    headers = HeadersField(
        required=False,
        max_length=100_000,
        widget=forms.Textarea(
            attrs={"rows": 2, "autocomplete": "off", "spellcheck": "false"}
        ),
        help_text="HTTP headers of each request to these upstreams, one per line, such "
        "as Authorization: Bearer TOKEN.",
    )
    agree = forms.IntegerField(
        label="Agreement",
        initial=1,
        required=False,
        help_text=Network._meta.get_field("agree").help_text,
    )
    checkpoint = forms.CharField(
        required=False,
        max_length=66,
        validators=[
            RegexValidator(
                r"^(finalized|0x[0-9a-fA-F]{64})\Z",
                "Enter finalized, or the hash of a block: 0x and 64 digits.",
            )
        ],
        widget=forms.TextInput(
            attrs={
                "class": "vTextField",
                "autocomplete": "off",
                "spellcheck": "false",
            }
        ),
        help_text="The block at which the network starts: its hash, which you have to "
        "trust, or finalized, to be shown the upstreams' finalized block. Empty: all "
        "blocks from block 0 on are executed.",
    )
    history = forms.IntegerField(
        label="History",
        initial=HISTORY_BLOCKS,
        required=False,
        min_value=0,
        help_text="Number of blocks below the checkpoint that are stored.",
    )
    from_genesis = forms.BooleanField(
        label="Execute all blocks of a built-in network from block 0 on", required=False
    )
    host_names = forms.CharField(
        required=False,
        max_length=10_000,
        widget=forms.Textarea(attrs={"rows": 2, "spellcheck": "false"}),
        help_text="One per line. The network answers requests to /v3/API_KEY on these "
        "hosts.",
    )
    may_repeat = forms.BooleanField(
        label="Add a second network with the same chain id and genesis", required=False
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        from evm.public import PUBLIC_NETWORKS  # loads a part of the EVM

        super().__init__(*args, **kwargs)
        self._public = PUBLIC_NETWORKS
        titles = [(one.name, one.title) for one in PUBLIC_NETWORKS.values()]
        public = self.fields["public"]
        assert isinstance(public, forms.ChoiceField)
        public.choices = [("", "none (upload a genesis.json)"), *titles]

    def clean_slug(self) -> str:
        """Return the slug. Raises: ValidationError if it is in use."""
        slug: str = self.cleaned_data["slug"]
        if Network.objects.filter(slug=slug).exists():
            raise ValidationError("This slug is in use. Choose another one.")
        return slug

    def clean_headers(self) -> dict[str, str]:
        """Parse the lines into headers. Raises: ValidationError without any value."""
        headers = parse_headers(self.cleaned_data["headers"].splitlines())
        validate_headers(headers)
        return headers

    def clean_agree(self) -> int:
        """Return the number, 1 for an empty field."""
        agree: int | None = self.cleaned_data["agree"]
        return 1 if agree is None else agree

    def clean(self) -> dict[str, Any]:
        """Require one source of the genesis."""
        cleaned = super().clean() or {}
        file = cleaned.get("genesis")
        if bool(cleaned.get("public")) == bool(file):
            raise ValidationError(
                "Either select a built-in network, or upload a genesis.json of at most "
                "1 MB. Use manage.py add_network for larger files."
            )
        if file and file.size > MAX_GENESIS_BYTES:
            self.add_error(
                "genesis",
                "The file is larger than 1 MB. Use manage.py add_network for it.",
            )
        return cleaned

    def save(self) -> Added | None:
        """Add the network. After an error, the form shows it and None is returned."""
        from nodeapi.new_network import (  # loads the EVM
            Addition,
            NotAdded,
            SameChain,
            add,
            parse_genesis,
        )

        cleaned = self.cleaned_data
        public = self._public.get(cleaned["public"])
        try:
            genesis = (
                public.genesis() if public else parse_genesis(cleaned["genesis"].read())
            )
        except ValueError as error:
            self.add_error("genesis", f"The file is invalid: {error}.")
            return None
        addition = Addition(
            slug=cleaned["slug"],
            name=cleaned["name"],
            genesis=genesis,
            genesis_hash=public.genesis_hash if public else b"",
            urls=cleaned["upstreams"].split(),
            headers=cleaned["headers"],
            agree=cleaned["agree"],
            host_names=cleaned["host_names"].split(),
            may_repeat=cleaned["may_repeat"],
        )
        if public and not cleaned["checkpoint"] and not cleaned["from_genesis"]:
            self.add_error(
                "from_genesis",
                f"All blocks of {public.title} take {public.from_block_0} (estimated). "
                "Enter a checkpoint, or tick this box.",
            )
            return None
        try:
            if cleaned["checkpoint"]:
                checkpoint = self._checkpoint(addition, public)
                if checkpoint is None:
                    return None
                addition = replace(addition, checkpoint=checkpoint)
            return add(addition)
        except ValidationError as error:
            self.add_error(None, error.messages)
        except SameChain as error:
            self.add_error(
                "may_repeat",
                f"Tick this box if you want a second network: {error}.",
            )
        except NotAdded as error:
            self.add_error(None, f"The network was not added: {error}.")
        return None

    def _checkpoint(
        self, addition: Addition, public: PublicNetwork | None
    ) -> Checkpoint | None:
        """Return the chosen checkpoint.

        If it was `finalized`, the form is shown again with the block's hash, and None is
        returned. Raises: as `nodeapi.new_network.choose_checkpoint`.
        """
        from nodeapi.new_network import (  # loads the EVM
            checkpoint_at,
            checkpoint_text,
            choose_checkpoint,
        )

        wanted = self.cleaned_data["checkpoint"]
        if wanted != "finalized":
            found = choose_checkpoint(addition, bytes.fromhex(wanted[2:]))
            history = self.cleaned_data["history"]
            history = HISTORY_BLOCKS if history is None else history
            return checkpoint_at(addition, found.header, history)
        found = choose_checkpoint(addition, None)
        self.data = {**self.data, "checkpoint": f"0x{found.header.hash.hex()}"}
        texts = [
            *checkpoint_text(found, public),
            "Then add the network with this hash.",
        ]
        self.add_error("checkpoint", " ".join(texts))
        return None
