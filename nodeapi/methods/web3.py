"""`web3_`: the software, and its hash function."""

from __future__ import annotations

from eth_hash.auto import keccak

from jsonrpc.params import Param
from nodeapi import CLIENT_VERSION
from nodeapi.encoding import any_data, data
from nodeapi.methods.catalog import registry
from nodeapi.methods.context import Context
from nodeapi.schemas.building import named
from nodeapi.schemas.values import DATA, HASH32


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
