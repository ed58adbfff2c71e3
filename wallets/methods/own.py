"""What concerns the wallet itself, in the scope `wallet:eip155`.

Source: https://eips.ethereum.org/EIPS/eip-3085; a chain that the wallet knows and a session
does not is asked for, as in MetaMask
"""

from __future__ import annotations

import re
from typing import Any

import orjson

from jsonrpc.errors import InvalidParams
from jsonrpc.params import Param
from wallets.caip import evm_scope
from wallets.errors import ScopesNotSupported, Unauthorized, UserRejected
from wallets.methods.asking import decision_on
from wallets.methods.catalog import own_methods
from wallets.methods.invocation import Invocation
from wallets.models import ADD_CHAIN, RequestState
from wallets.scopes import from_stored, on_all_chains
from wallets.services.consent import request_session

_CHAIN_ID = re.compile(r"0x(0|[1-9a-fA-F][0-9a-fA-F]{0,13})")
"""At most 55 bits, as the eip155 namespace has it."""

_NOT_SERVED = "this wallet does not serve that chain"


def _chain(value: Any) -> int:
    """Read the chain id of an AddEthereumChainParameter, the only member that counts."""
    chain_id = value.get("chainId") if isinstance(value, dict) else None
    if not isinstance(chain_id, str) or not _CHAIN_ID.fullmatch(chain_id):
        raise ValueError("chainId: expected a hexadecimal number without leading zeros")
    return int(chain_id, 16)


@own_methods.method(
    ADD_CHAIN,
    params=[Param("chain", _chain, {"type": "object"})],
    result={"type": "null"},
    summary="Has the user let the dapp use one more of the chains that are served.",
    is_slow=True,
)
async def add_ethereum_chain(invocation: Invocation, chain_id: int) -> None:
    """Return nothing once the session holds a chain; the user is asked if it does not.

    Raises: InvalidParams for a chain that is not served, as a dapp's node is no node of
        ours; UserRejected; Unauthorized when the session was ended meanwhile; and as
        `request_session`.
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
            wanted={scope: on_all_chains(session.scopes)},
            expires_at=session.ends_at,
        )
    except ScopesNotSupported as error:  # it has no blocks yet, or not for the wallet
        raise InvalidParams(_NOT_SERVED) from error
    if outcome.state == RequestState.WITHDRAWN:
        raise Unauthorized
    if outcome.state != RequestState.APPROVED:
        raise UserRejected
    granted = from_stored(orjson.loads(outcome.outcome)["scopes"])
    if scope not in granted:  # he has left other boxes ticked
        raise UserRejected
