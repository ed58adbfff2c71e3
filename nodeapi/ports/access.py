"""Keys, networks, and the charges of requests."""

from __future__ import annotations

from typing import Protocol

from jsonrpc.errors import RpcError
from jsonrpc.later import Later
from keys.grants import Grant
from keys.limiter.gcra import Limits
from keys.metering import Use
from networks.directory import NetworkView


class Grants(Protocol):
    """Authenticates API keys; see `keys.grants`."""

    def resolve(self, key: str, client: str | None = None) -> Later[Grant]:
        """Return the grant of a key. Fails with an RpcError.

        client: the IP address that sent the key.
        """


class Directory(Protocol):
    """The networks; see `networks.directory`."""

    def by_slug(self, slug: str) -> NetworkView | None:
        """Return the network with a slug, or None."""

    def by_host(self, host: str) -> NetworkView | None:
        """Return the network of a Host header, otherwise the default one."""

    def retired(self, slug: str, host: str) -> str:
        """Return the slug of the retired network that a request is for, or ""."""


class Limiter(Protocol):
    """Charges keys; see `keys.limiter`."""

    def charge(
        self, api_key_id: int, limits: Limits | None, credits: int
    ) -> Later[None]:
        """Charge the credits that a request costs.

        Fails with an error of `keys.limiter.errors`.
        """

    def refund(self, api_key_id: int, limits: Limits | None, credits: int) -> None:
        """Refund credits that were overcharged."""


class Meter(Protocol):
    """Counts calls; see `keys.metering`."""

    def book(self, use: Use, credits: int, microseconds: int, size: int) -> None:
        """Count a call. size: bytes of its response."""

    def fail(
        self, api_key_id: int, network_id: int, method: str, error: RpcError
    ) -> None:
        """Record a call that was answered with an error, for the key's owner."""


class UsesAfterRevocation(Protocol):
    """Records uses of revoked secrets; see `keys.use_after_revocation`."""

    def note(self, version_id: int, ip: str | None) -> None:
        """Start recording a use. Does not block."""
