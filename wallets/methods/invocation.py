"""The call that wallet_invokeMethod passes to the wallet's handlers."""

from __future__ import annotations

from dataclasses import dataclass

from networks.directory import NetworkView
from wallets import caip
from wallets.errors import Unauthorized
from wallets.scopes import ScopeObject
from wallets.serving.context import Context


@dataclass(frozen=True, slots=True)
class Invocation:
    """A call that the session allows.

    scope: the name of the scope. granted: its scope object in the session.
    network: of a chain's scope; None for the wallet's own scope.
    """

    context: Context
    scope: str
    granted: ScopeObject
    network: NetworkView | None

    def require_account(self, address: str) -> caip.Address:
        """Return an address in its normal form, if the session grants the account.

        Raises: Unauthorized if the account is not granted in this scope.
        """
        namespace = caip.account_namespace(caip.parse_scope(self.scope)) or ""
        try:
            named = caip.parse_address(namespace, address)
        except ValueError as error:
            raise Unauthorized from error
        if f"{self.scope}:{named.address}" not in self.granted.accounts:
            raise Unauthorized
        return named
