"""What concerns the wallet itself, in the scope `wallet:eip155`.

Source: https://eips.ethereum.org/EIPS/eip-3085
"""

from __future__ import annotations

import re
from typing import Any

from jsonrpc.errors import InvalidParams
from jsonrpc.params import Param
from wallets.caip import evm_scope
from wallets.methods.catalog import own_methods
from wallets.methods.invocation import Invocation

_CHAIN_ID = re.compile(r"0x(0|[1-9a-fA-F][0-9a-fA-F]{0,13})")
"""At most 55 bits, as the eip155 namespace has it."""


def _chain(value: Any) -> int:
    """Read the chain id of an AddEthereumChainParameter, the only member that counts."""
    chain_id = value.get("chainId") if isinstance(value, dict) else None
    if not isinstance(chain_id, str) or not _CHAIN_ID.fullmatch(chain_id):
        raise ValueError("chainId: expected a hexadecimal number without leading zeros")
    return int(chain_id, 16)


@own_methods.method(
    "wallet_addEthereumChain",
    params=[Param("chain", _chain, {"type": "object"})],
    result={"type": "null"},
    summary="Returns null for a chain that is served; others can't be added.",
)
def add_ethereum_chain(invocation: Invocation, chain_id: int) -> None:
    """Return nothing: a chain that is served needs no adding.

    Raises: InvalidParams for any other; a dapp's node is no node of ours.
    """
    if invocation.context.wallet.network(evm_scope(chain_id)) is None:
        raise InvalidParams("this wallet does not serve that chain")
