"""Data of `make run`: the sample chain, a live network, a customer with two keys, staff.

All functions are idempotent: existing data is kept. The secrets are stored only in
VAR_DIR/run.json (mode 0600, see `config.run_file`); the database has their digests.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db.models import Exists, OuterRef

from config import env
from evm.chain_config import ChainConfig
from evm.hexadecimal import to_hex
from keys import format as key_format
from keys.models import KeyVersion, User
from keys.services import get_or_create_customer, issue_key
from networks.models import Network
from networks.services import configure_network
from nodeapi.chain.database import import_lock, importer_connection
from nodeapi.chain.genesis import verified_genesis
from nodeapi.chain.networks import open_network
from nodeapi.deletion.chain import delete_chain
from nodeapi.management.genesis_file import read_genesis
from nodeapi.models import Block, StorageVersion

NETWORK = "sample"
LIVE_NETWORK = "live"
CUSTOMER = "customer@example.org"
STAFF = "staff@example.org"
SAMPLE_DIR = env.BASE_DIR / "samples" / NETWORK

EARLIER_BLOCKS_0 = frozenset(
    {bytes.fromhex("88ee7bbc923ef01b29348df00352a8adc8e411b9da911b3b0cedcabc16d456fc")}
)
"""Hashes of the block 0 of sample chains of earlier versions. The first one ended with
Osaka."""

_LAST_SYSTEM_ADDRESS = b"\x00" + b"\xff" * 19
# The system contracts, whose slots every block changes, all begin with a zero byte.


@dataclass(frozen=True, slots=True)
class Sample:
    """Arguments for an example call: a block, and a slot that it left non-zero."""

    network: str
    block_hash: str
    block_number: int
    transaction_index: int
    contract_address: str
    storage_position: str


@dataclass(frozen=True, slots=True)
class Run:
    """The content of VAR_DIR/run.json, which describes a running service."""

    base_url: str
    network: str
    api_key: str
    debug_api_key: str
    admin_url: str
    admin_user: str
    admin_password: str
    dashboard_url: str
    customer_user: str
    customer_password: str
    sample: dict[str, Any]


def import_sample_chain() -> None:
    """Import the sample chain, without blocks that are stored already.

    The chain of an earlier version with another block 0 is deleted before.
    """
    remove_earlier_chain(read_genesis(SAMPLE_DIR / "genesis.json"))
    call_command(
        "import_chain",
        str(SAMPLE_DIR / "chain.rlp"),
        network=NETWORK,
        name="Sample chain",
        genesis=SAMPLE_DIR / "genesis.json",
        second=True,  # the live network may be the sample chain, too
    )


def remove_earlier_chain(genesis: dict[str, Any]) -> None:
    """Delete the sample network's chain if it is that of an earlier version.

    The network with its settings, entitlements and usage is kept. So is any other chain
    in a network of this name.
    Raises: ImportRunning.
    """
    network = Network.objects.filter(slug=NETWORK).first()
    if network is None or hasattr(network, "deletion"):
        return
    if bytes(network.genesis_hash) not in EARLIER_BLOCKS_0:
        return
    config = ChainConfig.from_genesis(genesis)
    block_hash = verified_genesis(genesis, config)[0].block.header.hash
    with importer_connection() as connection, import_lock(connection, network.pk):
        delete_chain(connection, network.pk, block_hash)


def follow_upstreams(urls: Sequence[str], genesis: Path | None) -> None:
    """Set the upstreams of the live network. The network is added if it is missing.

    genesis: genesis.json of the network, or None if the network exists already.
    Raises: CommandError; NetworkMismatch if the network has another genesis.
    """
    network = Network.objects.filter(slug=LIVE_NETWORK).first()
    if network is None:
        if genesis is None:
            raise CommandError(
                f"the first start with --upstream adds the network {LIVE_NETWORK!r}, "
                "for which --genesis FILE is required"
            )
        # The upstreams may serve the sample chain itself.
        options = ["--second", *(f"--upstream={url}" for url in urls)]
        call_command("add_network", LIVE_NETWORK, f"--genesis={genesis}", *options)
        return
    if genesis is not None:
        with importer_connection() as connection:
            open_network(connection, LIVE_NETWORK, genesis=read_genesis(genesis))
    try:
        configure_network(network=network, upstream_urls=urls)
    except ValidationError as error:
        raise CommandError(" ".join(error.messages)) from error


def prepare(base_url: str, path: Path, known_path: Path | None = None) -> Run:
    """Create missing keys and users, write `path` and return its content.

    known_path: the file with the secrets of earlier starts, by default `path` itself.
    """
    known = _read(known_path or path)
    run = Run(
        base_url=base_url,
        network=NETWORK,
        api_key=_api_key(known.get("api_key"), "Demo", may_trace=False),
        debug_api_key=_api_key(
            known.get("debug_api_key"), "Demo with tracing", may_trace=True
        ),
        admin_url=f"{base_url}/admin/",
        admin_user=STAFF,
        admin_password=_password(_staff(), known.get("admin_password")),
        dashboard_url=f"{base_url}/dashboard/",
        customer_user=CUSTOMER,
        customer_password=_password(
            get_or_create_customer(email=CUSTOMER), known.get("customer_password")
        ),
        sample=asdict(find_sample(NETWORK)),
    )
    _write(path, run)
    return run


def find_sample(slug: str) -> Sample:
    """Return the newest block of a network that left a contract's slot non-zero."""
    versions = StorageVersion.objects.filter(network__slug=slug)
    newer = versions.filter(
        address=OuterRef("address"),
        slot=OuterRef("slot"),
        block_number__gt=OuterRef("block_number"),
    )
    version = (
        versions.filter(~Exists(newer), address__gt=_LAST_SYSTEM_ADDRESS)
        .exclude(value=b"")
        .order_by("-block_number", "address", "slot")[0]
    )
    block = Block.objects.get(
        network_id=version.network_id, is_canonical=True, number=version.block_number
    )
    return Sample(
        network=slug,
        block_hash=to_hex(block.hash),
        block_number=block.number,
        transaction_index=0,
        contract_address=to_hex(version.address),
        storage_position=to_hex(version.slot),
    )


def _api_key(known: str | None, name: str, *, may_trace: bool) -> str:
    """Return the key of an earlier start if it is valid, otherwise a new one."""
    if known is not None:
        digest = key_format.digest(known)
        if KeyVersion.objects.live().filter(digest=digest).exists():
            return known
    owner = get_or_create_customer(email=CUSTOMER)
    return issue_key(owner=owner, name=name, may_trace=may_trace).secret


def _staff() -> User:
    """Return the member of staff, without a password if the user is new."""
    found = User.objects.filter(email=STAFF).first()
    return found or User.objects.create_superuser(STAFF)


def _password(user: User, known: str | None) -> str:
    """Return the user's password from run.json, or set and return a new one.

    A password that was changed on a page is not set again.
    """
    if known is not None and user.has_usable_password():
        return known
    password = secrets.token_urlsafe(12)
    user.set_password(password)
    user.save(update_fields=["password"])
    return password


def _read(path: Path) -> dict[str, Any]:
    try:
        known = json.loads(path.read_text())
    except (FileNotFoundError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def _write(path: Path, run: Run) -> None:
    """Write the file atomically, readable for its owner only."""
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.touch(mode=0o600)
    draft.write_text(json.dumps(asdict(run), indent=2) + "\n")
    draft.replace(path)
