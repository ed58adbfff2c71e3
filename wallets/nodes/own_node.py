"""The methods of this service, as the node of a network without upstreams."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import orjson

from jsonrpc.errors import RpcError
from jsonrpc.stream import Stream
from keys.grants import Grant
from keys.site import site_url
from networks.directory import NetworkView
from nodeapi.methods import registry as node_methods
from nodeapi.methods.context import Context as NodeContext
from nodeapi.methods.proving import when_known
from nodeapi.node import Node
from nodeapi.upstreams.errors import UpstreamUnavailable
from postgres.errors import Unavailable
from server.request_id import RequestId
from wallets.upstream import ChainNode, UpstreamRefused

_METHOD_NOT_FOUND = -32601


@dataclass(frozen=True, slots=True)
class OwnNode(ChainNode):
    """Calls methods of this service. Nothing is charged, as for calls of upstreams.

    grant: the wallet's own API key. user: the user of the wallet whose dapp calls.
    """

    node: Node
    network: NetworkView
    grant: Grant
    request_id: RequestId
    user: int | None = None

    async def call(self, method: str, *params: Any) -> Any:
        """Call a method of this service, and return its result."""
        found = node_methods.find(method)
        if found is None:
            raise UpstreamRefused(_METHOD_NOT_FOUND, f"there is no method {method}")
        node = self.node
        context = NodeContext(
            self.request_id,
            self.grant,
            self.network,
            node.store,
            node.tracing,
            relay=node.relay,
            user=self.user,
            values=node.values,
        )
        try:
            arguments = found.signature.decode(list(params))
            value = await when_known(context, partial(found.start, context, arguments))
            if isinstance(value, Stream):
                await value.aclose()
                raise UpstreamUnavailable("a result is too long")
            return orjson.loads(found.encode(value))
        except RpcError as error:
            data = error.linked_data(site_url(""))
            raise UpstreamRefused(error.code, error.message, data) from error
        except Unavailable as error:
            raise UpstreamUnavailable(str(error)) from error
