"""Methods of the wallet itself, in the scope `wallet:eip155`.

As in MetaMask, the user is asked for a chain that the wallet serves and the session
lacks.
Source: https://eips.ethereum.org/EIPS/eip-3085
"""

from __future__ import annotations

import re
from typing import Any

import orjson

from jsonrpc.errors import InvalidParams
from jsonrpc.params import Param
from wallets.caip import evm_scope
from wallets.errors import ScopesNotSupported, Unauthorized, UserRejected
from wallets.methods.decisions import decision_on
from wallets.methods.invocation import Invocation
from wallets.models import ADD_CHAIN, RequestState
from wallets.registries import own_methods
from wallets.scopes import from_stored, merged_chains
from wallets.services.consent import request_session

_CHAIN_ID = re.compile(r"0x(0|[1-9a-fA-F][0-9a-fA-F]{0,13})")
"""At most 55 bits, the limit of the eip155 namespace."""

_NOT_SERVED = "this wallet does not serve that chain"


def _chain(value: Any) -> int:
    """Read the chainId of an AddEthereumChainParameter; other members are ignored."""
    chain_id = value.get("chainId") if isinstance(value, dict) else None
    if not isinstance(chain_id, str) or not _CHAIN_ID.fullmatch(chain_id):
        raise ValueError("chainId: expected a hexadecimal number without leading zeros")
    return int(chain_id, 16)


@own_methods.method(
    ADD_CHAIN,
    params=[Param("chain", _chain, {"type": "object"})],
    result={"type": "null"},
    summary="Asks the user to add a chain that the wallet serves to the session.",
    is_slow=True,
)
async def add_ethereum_chain(invocation: Invocation, chain_id: int) -> None:
    """Add a chain to the session, after the user's consent if it is not granted yet.

    Raises: InvalidParams for a chain that is not served, because the wallet does not
        use nodes that dapps name; UserRejected; Unauthorized if the session has ended
        since the call; the errors of `request_session`.
    """
    scope, context = evm_scope(chain_id), invocation.context
    if context.wallet.network(scope) is None:
        raise InvalidParams(_NOT_SERVED)
    session = await context.wallet.store.session(context.peer.dapp_id)
    if scope in session.scopes:
        return
    try:
        outcome = await decision_on(
            context,
            request_session,
            method=ADD_CHAIN,
            wanted={scope: merged_chains(session.scopes)},
            expires_at=session.ends_at,
        )
    except (
        ScopesNotSupported
    ) as error:  # the chain has no blocks yet, or the wallet's key has no access
        raise InvalidParams(_NOT_SERVED) from error
    if outcome.state == RequestState.WITHDRAWN:
        raise Unauthorized
    if outcome.state != RequestState.APPROVED:
        raise UserRejected
    granted = from_stored(orjson.loads(outcome.outcome)["scopes"])
    if scope not in granted:  # the user has approved without this chain
        raise UserRejected
