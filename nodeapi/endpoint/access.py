"""Authorization of requests and sockets by key, network and client.

Used for HTTP requests (`nodeapi.endpoint.endpoint`) and for WebSockets (`nodeapi.sockets`).
"""

from __future__ import annotations

import logging
from collections import Counter

from jsonrpc.errors import InternalError, RpcError, ServiceUnavailable
from keys.errors import KeyInvalid, KeyRevoked, NetworkNotEnabled, OfKnownKey
from keys.grants import Grant
from keys.site import Headers
from networks.directory import NetworkView
from nodeapi.errors.access import NetworkRetired, UnknownNetwork, UnknownPath
from nodeapi.node import Node
from postgres.errors import Unavailable
from server.request_id import RequestId

logger = logging.getLogger(__name__)


class Access:
    """Authenticates keys, finds networks, and counts rejected requests."""

    def __init__(self, node: Node) -> None:
        self.resolve = node.grants.resolve
        """Return the grant of a key; see `keys.grants.Grants.resolve`."""
        self._node = node
        self._directory = node.directory
        self._meter = node.meter
        self.refusals: Counter[tuple[int, str]] = Counter()
        """Requests that were not authorized, by status and reason. No key is charged."""

    def network(
        self, grant: Grant, slug: str, headers: Headers, client: str | None
    ) -> NetworkView:
        """Return the network that a request is for, if its key grants access to it.

        slug: from the path; "" for the network of the Host header.
        client: IP address.
        Raises: UnknownNetwork, NetworkRetired, NetworkNotEnabled; see
            `Allowlists.require_client`.
        """
        host = ""
        if slug:
            network = self._directory.by_slug(slug)
        else:
            host = headers.get(b"host", b"").decode("latin-1")
            network = self._directory.by_host(host)
        if network is None:
            if retired := self._directory.retired(slug, host):
                raise NetworkRetired(retired)
            raise UnknownNetwork
        self.require(grant, network, headers, client)
        return network

    def require(
        self, grant: Grant, network: NetworkView, headers: Headers, client: str | None
    ) -> None:
        """Check that a key grants a client access to a network.

        Raises: NetworkNotEnabled; see `Allowlists.require_client`.
        """
        try:
            if grant.networks is not None and network.id not in grant.networks:
                raise NetworkNotEnabled(network.slug)
            if grant.allowlists is not None:
                grant.allowlists.require_client(
                    client, headers.get(b"origin"), headers.get(b"user-agent")
                )
        except OfKnownKey as error:
            error.api_key_id, error.network_id = grant.api_key_id, network.id
            raise

    def refusal(
        self, cause: BaseException, client: str | None, request_id: RequestId
    ) -> RpcError:
        """Return the error that the client gets, and count it.

        Uses of revoked and of unknown keys are recorded. An unexpected exception is
        logged.
        """
        error = self._as_rpc_error(cause, client, request_id)
        # The traceback's frames refer to the request, whose note may refer to the error.
        cause.__traceback__ = error.__traceback__ = None
        self.refusals[error.http_status, error.reason] += 1
        if isinstance(error, OfKnownKey) and error.api_key_id:
            self._meter.fail(error.api_key_id, error.network_id, "", error)
        return error

    def _as_rpc_error(
        self, error: BaseException, client: str | None, request_id: RequestId
    ) -> RpcError:
        if isinstance(error, KeyRevoked):
            self._node.uses_after_revocation.note(error.version_id, client)
        if isinstance(error, KeyInvalid):
            return self._node.unknown_keys.count(client) or error
        if isinstance(error, RpcError):
            return error
        if isinstance(error, Unavailable):
            return ServiceUnavailable()
        logger.error("request %s crashed", request_id, exc_info=error)
        return InternalError()


def read_path(path: str, headers: Headers) -> tuple[str, str]:
    """Return the slug and the key of `[/<slug>]/v3[/<key>]`. An absent part is "".

    The key may be in an Authorization header instead.
    Raises: UnknownPath.
    """
    before, found, after = f"{path}/".partition("/v3/")
    slug, key = before[1:], after.rstrip("/")
    if not found or "/" in slug or "/" in key:
        raise UnknownPath
    return slug, key or _bearer_key(headers)


def is_node_path(path: str) -> bool:
    """Return whether a path is `/v3[/…]` or `/<slug>/v3[/…]`.

    `/ws/v3` is that of WebSockets; no network has the slug `ws`.
    """
    before, found, _ = f"{path}/".partition("/v3/")
    return found != "" and "/" not in before[1:] and before != "/ws"


def _bearer_key(headers: Headers) -> str:
    """Return the key of an Authorization header, or ""."""
    authorization = headers.get(b"authorization", b"")
    scheme, _, key = authorization.partition(b" ")
    return key.strip().decode("latin-1") if scheme.lower() == b"bearer" else ""
