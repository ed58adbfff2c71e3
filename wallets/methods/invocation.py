"""What the methods behind wallet_invokeMethod know of a call."""

from __future__ import annotations

from dataclasses import dataclass

from networks.directory import NetworkView
from wallets import caip
from wallets.context import Context
from wallets.errors import Unauthorized
from wallets.scopes import ScopeObject


@dataclass(frozen=True, slots=True)
class Invocation:
    """A call that the session allows.

    scope: the name of the scope, granted: what the session holds in it.
    network: of a chain's scope, None of the wallet's own.
    """

    context: Context
    scope: str
    granted: ScopeObject
    network: NetworkView | None

    def require_account(self, address: str) -> caip.Address:
        """Return an address that the dapp may use here, in whatever case it came.

        Raises: Unauthorized.
        """
        namespace = caip.account_namespace(caip.parse_scope(self.scope)) or ""
        try:
            named = caip.parse_address(namespace, address)
        except ValueError as error:
            raise Unauthorized from error
        if f"{self.scope}:{named.address}" not in self.granted.accounts:
            raise Unauthorized
        return named
