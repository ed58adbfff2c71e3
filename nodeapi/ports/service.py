"""The service as a whole."""

from __future__ import annotations

from typing import Protocol

from keys.unknown_keys import UnknownKeys
from nodeapi.ports.access import Directory, Grants, Limiter, Meter, UsesAfterRevocation
from nodeapi.ports.events import Filters
from nodeapi.ports.relay import Relay
from nodeapi.ports.store import Store
from nodeapi.ports.tasks import Tracing


class Service(Protocol):
    """The parts of the node, which start and stop with the server."""

    @property
    def grants(self) -> Grants:
        """Authenticates keys."""

    @property
    def directory(self) -> Directory:
        """The networks, by slug and by host name."""

    @property
    def store(self) -> Store:
        """Reads blocks, state and trace records."""

    @property
    def tracing(self) -> Tracing:
        """Executes blocks again for traces on demand."""

    @property
    def relay(self) -> Relay | None:
        """Sends requests to upstreams. None: the service has no relay."""

    @property
    def filters(self) -> Filters | None:
        """The filters that clients poll. None: the service has no filters."""

    @property
    def limiter(self) -> Limiter | None:
        """Charges keys. None: nothing is charged."""

    @property
    def meter(self) -> Meter | None:
        """Counts calls. None: nothing is counted."""

    @property
    def unknown_keys(self) -> UnknownKeys:
        """The rate limit for requests with unknown keys."""

    @property
    def uses_after_revocation(self) -> UsesAfterRevocation:
        """Records uses of revoked secrets."""

    async def start(self) -> None:
        """Open the connections that requests need."""

    async def stop(self) -> None:
        """Close the connections."""
