"""Changes of networks. The commit of a change notifies the serving processes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from django.core.exceptions import ValidationError
from django.db import transaction

from networks.masking import mask_url
from networks.models import (
    HISTORY_BLOCKS,
    MAX_UPSTREAMS,
    HostName,
    Network,
    NetworkDeletion,
    NetworkState,
    Upstream,
)
from outbox.append import append
from outbox.streams import ACCESS


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The trusted block at which a network starts.

    history_blocks: number of blocks below it that are stored. has_total_difficulty:
        whether the total difficulty of blocks since the merge is known.
    """

    number: int
    hash: bytes
    history_blocks: int = HISTORY_BLOCKS
    has_total_difficulty: bool = False


def announce_network(network: Network) -> None:
    """Notify the serving processes, at the commit, that a network has changed."""
    append(ACCESS, f"network:{network.pk}")


@transaction.atomic
def create_network(
    *,
    slug: str,
    name: str,
    chain_id: int,
    genesis: dict[str, Any],
    genesis_hash: bytes,
    checkpoint: Checkpoint | None = None,
) -> Network:
    """Create a network without blocks, which is preparing.

    genesis: geth's genesis.json without the alloc. checkpoint: None to start at block 0.
    Raises: ValidationError for an invalid value, and if the slug is already in use.
    """
    network = Network(
        slug=slug,
        name=name,
        chain_id=chain_id,
        genesis=genesis,
        genesis_hash=genesis_hash,
        is_preparing=True,
    )
    if checkpoint is not None:
        network.checkpoint_number = checkpoint.number
        network.checkpoint_hash = checkpoint.hash
        network.history_blocks = checkpoint.history_blocks
        network.emit_total_difficulty = checkpoint.has_total_difficulty
    network.full_clean()
    network.save()
    announce_network(network)
    return network


@transaction.atomic
def change_state(*, network: Network, state: NetworkState) -> Network:
    """Show, hide or retire a network. A network that is shown is not preparing any more.

    Raises: ValidationError if the network is being deleted.
    """
    # No import reads or writes the state while it is changed.
    Network.objects.select_for_update(no_key=True).only("pk").get(pk=network.pk)
    if NetworkDeletion.objects.filter(network=network).exists():
        raise ValidationError(f"{network.slug} is being deleted.")
    network.state = state
    if state == NetworkState.VISIBLE:
        network.is_preparing = False
    network.save(update_fields=["state", "is_preparing"])
    announce_network(network)
    return network


@transaction.atomic
def finish_preparing(network_id: int) -> None:
    """End the first import of a network: its requests are answered from now on."""
    preparing = Network.objects.filter(pk=network_id, is_preparing=True)
    if preparing.update(is_preparing=False):
        append(ACCESS, f"network:{network_id}")


@transaction.atomic
def delete_network(network: Network) -> None:
    """Delete a network with its chain data and everything else that refers to it."""
    announce_network(network)
    network.delete()


@transaction.atomic
def configure_network(
    *,
    network: Network,
    name: str | None = None,
    host_names: Iterable[str] | None = None,
    tracers: Iterable[str] | None = None,
    emit_total_difficulty: bool | None = None,
    upstream_urls: Iterable[str] | None = None,
    upstream_headers: Mapping[str, str] | None = None,
    upstreams_enabled: Mapping[int, bool] | None = None,
    agree: int | None = None,
    keep_side_blocks: int | Literal["all"] | None = None,
    keep_proofs: int | Literal["all"] | None = None,
    public_explorer: bool | None = None,
) -> Network:
    """Change the given fields. None leaves a field unchanged.

    host_names, upstream_urls: the complete list.
    upstream_headers: see `replace_upstreams`. upstreams_enabled: by upstream id.
    agree: the number of upstreams that have to agree on the head.
    keep_side_blocks, keep_proofs, public_explorer: see the fields of `Network`. "all": without a limit.

    Raises: ValidationError for an invalid value, another network's host name or an unknown
        upstream, and if fewer than `agree` upstreams are enabled.
    """
    given = {
        "name": name,
        "tracers": None if tracers is None else list(dict.fromkeys(tracers)),
        "emit_total_difficulty": emit_total_difficulty,
        "agree": agree,
        "keep_side_blocks": keep_side_blocks,
        "keep_proofs": keep_proofs,
        "public_explorer": public_explorer,
    }
    changed = {field: value for field, value in given.items() if value is not None}
    for field, value in changed.items():
        setattr(network, field, None if value == "all" else value)
    network.full_clean()
    # Only these columns, because the importer changes the head concurrently.
    network.save(update_fields=list(changed))
    if host_names is not None:
        network.host_names.all().delete()
        for host_name in dict.fromkeys(host.lower() for host in host_names):
            row = HostName(network=network, name=host_name)
            row.full_clean()
            row.save()
    if upstream_urls is not None:
        replace_upstreams(network=network, urls=upstream_urls, headers=upstream_headers)
    if upstreams_enabled:
        _enable_upstreams(network, upstreams_enabled)
    check_agreement(network.agree, _enabled(network))
    announce_network(network)
    return network


@transaction.atomic
def add_upstream(
    *,
    network: Network,
    url: str,
    headers: Mapping[str, str] | None = None,
    note: str = "",
) -> Upstream:
    """Add an upstream as the last one of a network.

    Raises: ValidationError for an invalid value or a duplicate URL. No message contains
        the URL or a header's value.
    """
    before = _locked_upstreams(network)
    check_upstream_urls([*(each.url for each in before), url])
    upstream = Upstream(
        network=network,
        url=url,
        headers=dict(headers or {}),
        position=max((each.position + 1 for each in before), default=0),
        note=note,
    )
    upstream.full_clean()
    upstream.save()
    announce_network(network)
    return upstream


@transaction.atomic
def replace_upstreams(
    *, network: Network, urls: Iterable[str], headers: Mapping[str, str] | None = None
) -> list[Upstream]:
    """Replace a network's upstreams by enabled ones with these URLs, in this order.

    headers: the headers of each upstream. If None, an upstream with an unchanged URL keeps
        its headers.

    The caller has to check that enough upstreams remain (`check_agreement`).

    Raises: ValidationError, like `add_upstream`.
    """
    before = {each.url: each for each in _locked_upstreams(network)}
    wanted = list(urls)
    check_upstream_urls(wanted)
    after = []
    for position, url in enumerate(wanted):
        upstream = before.pop(url, None) or Upstream(network=network, url=url)
        upstream.position, upstream.is_enabled = position, True
        if headers is not None:
            upstream.headers = dict(headers)
        upstream.full_clean()
        upstream.save()
        after.append(upstream)
    network.upstreams.filter(pk__in=[each.pk for each in before.values()]).delete()
    announce_network(network)
    return after


def check_upstream_urls(urls: Iterable[str]) -> None:
    """Check that a network's URLs differ and are at most MAX_UPSTREAMS.

    An upstream that is listed twice would agree with itself.

    Raises: ValidationError. The message contains no URL.
    """
    seen: set[str] = set()
    for url in urls:
        if url in seen:
            raise ValidationError(f"The upstream {mask_url(url)} is listed twice.")
        seen.add(url)
    if len(seen) > MAX_UPSTREAMS:
        raise ValidationError(f"A network has at most {MAX_UPSTREAMS} upstreams.")


def check_agreement(agree: int, enabled: int) -> None:
    """Check that at least `agree` upstreams are enabled, or none.

    Raises: ValidationError.
    """
    if 0 < enabled < agree:
        raise ValidationError(
            f"{agree} upstreams have to agree, but only {enabled} "
            f"{'is' if enabled == 1 else 'are'} enabled. Enable more of them, or lower "
            "the agreement."
        )


def _locked_upstreams(network: Network) -> list[Upstream]:
    """Return a network's upstreams. Concurrent changes wait until the transaction ends."""
    Network.objects.select_for_update(no_key=True).only("pk").get(pk=network.pk)
    return list(network.upstreams.all())


def _enable_upstreams(network: Network, enabled: Mapping[int, bool]) -> None:
    """Enable and disable upstreams by their ids.

    Raises: ValidationError for an id of another network.
    """
    known = {upstream.pk: upstream for upstream in _locked_upstreams(network)}
    for number, is_enabled in enabled.items():
        if number not in known:
            raise ValidationError(
                f"{network.slug} has no upstream {number}. network_status lists the "
                "upstreams with their numbers."
            )
        known[number].is_enabled = is_enabled
        known[number].save(update_fields=["is_enabled"])


def _enabled(network: Network) -> int:
    return network.upstreams.filter(is_enabled=True).count()
