"""`net_`: the network's id and the number of upstreams."""

from __future__ import annotations

from nodeapi.encoding import quantity
from nodeapi.methods.catalog import registry
from nodeapi.methods.context import Context
from nodeapi.schemas.building import named
from nodeapi.schemas.values import BOOLEAN, QUANTITY


@registry.method(
    "net_version",
    result=named("networkId", {"type": "string", "pattern": "^[0-9]+$"}),
    summary="Returns the network's id, in decimal digits.",
)
def version(context: Context) -> bytes:
    """Return the network's id, which is its chain id."""
    return b'"%d"' % context.network.chain_id


@registry.method(
    "net_listening",
    result=named("isListening", BOOLEAN),
    summary="Returns whether the node accepts connections: always true.",
)
def listening(context: Context) -> bytes:
    """Return true."""
    return b"true"


@registry.method(
    "net_peerCount",
    encode=quantity,
    result=named("peerCount", QUANTITY),
    summary="Returns the number of upstream nodes of the network.",
)
def count_peers(context: Context) -> int:
    """Return the number of enabled upstreams, from which blocks are taken."""
    return len(context.network.upstreams)
