"""`net_`, `web3_` and `rpc_`: the network and the software, and its methods."""

from __future__ import annotations

import re
from functools import cache

from eth_hash.auto import keccak

from jsonrpc.params import Param
from jsonrpc.text import dump
from nodeapi import CLIENT_VERSION
from nodeapi.encoding import any_data, data, quantity
from nodeapi.methods.catalog import registry
from nodeapi.methods.context import Context
from nodeapi.schemas import openrpc
from nodeapi.schemas.building import named
from nodeapi.schemas.values import BOOLEAN, DATA, HASH32, QUANTITY


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


@registry.method(
    "web3_clientVersion",
    result=named("clientVersion", {"type": "string"}),
    summary="Returns the name and version of the software.",
)
def client_version(context: Context) -> bytes:
    """Return name, version, platform and language."""
    return b'"%s"' % CLIENT_VERSION.encode()


@registry.method(
    "web3_sha3",
    params=[Param("data", any_data, DATA, summary="The data to hash.")],
    encode=data,
    result=named("hash", HASH32),
    summary="Returns the Keccak-256 hash of data.",
)
def sha3(context: Context, preimage: bytes) -> bytes:
    """Return a hash of 32 bytes."""
    return keccak(preimage)


@registry.method(
    "rpc_modules",
    result=named(
        "modules", {"type": "object", "additionalProperties": {"type": "string"}}
    ),
    summary="Returns the namespaces of methods with their versions.",
)
def modules(context: Context) -> bytes:
    """Return the namespaces. Every version is 1.0, as in geth."""
    names = {re.split(r"[_.]", method.name)[0] for method in registry}
    return dump(dict.fromkeys(sorted(names), "1.0"))


@registry.method(
    "rpc.discover",
    result=named("openrpc", {"type": "object"}),
    summary="Returns the OpenRPC document of this service.",
)
def discover(context: Context) -> bytes:
    """Return the OpenRPC document, which is generated from the registry of methods.

    That of a network that started at a checkpoint names the oldest blocks with data, and
    those whose data an upstream that keeps old states can prove.
    """
    network = context.network
    checkpoint, oldest = network.checkpoint_number, network.oldest_number
    if checkpoint is None:
        return _document()
    stored = 0 if oldest == 1 else oldest or checkpoint
    kept = {
        "checkpoint": hex(checkpoint),
        "oldestBlock": {
            "blocks": hex(stored),
            "logs": hex(stored),
            "state": hex(checkpoint),
            "traces": hex(checkpoint + 1),
        },
        "byProofs": {"state": hex(stored), "traces": hex(stored + 1)},
    }
    return _document()[:-1] + b',"x-history":%b}' % dump(kept)


@cache
def _document() -> bytes:
    return dump(openrpc.document(registry))
