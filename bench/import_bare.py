"""Import by py-evm without our code, as a racer (`bench.racers`). The chain is only in memory.

    python -m bench.import_bare FOLDER

py-evm's own VM, `Chain.import_block` with its validation on an AtomicDB over a dict,
coincurve for signatures and the same keccak as ours. The blocks are decoded before the
measurement starts.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

os.environ["ETH_HASH_BACKEND"] = "pysha3"
os.environ["ECC_BACKEND_CLASS"] = "eth_keys.backends.CoinCurveECCBackend"

import rlp
from eth._utils.db import apply_state_dict
from eth.chains.base import Chain
from eth.db.atomic import AtomicDB
from eth.vm.chain_context import ChainContext
from eth.vm.forks.prague import PragueVM
from eth.vm.forks.prague.blocks import PragueBlock, PragueBlockHeader
from eth_keys import KeyAPI
from eth_keys.backends import CoinCurveECCBackend

from bench.racers import serve
from bench.token_chain import CHAIN_ID, in_folder
from evm.chain_config import ChainConfig
from evm.genesis import genesis_accounts
from nodeapi.chain.genesis import verified_genesis


class PragueChain(Chain):
    """A chain on which Prague is active from the genesis on."""

    vm_configuration = ((0, PragueVM),)
    chain_id = CHAIN_ID


def open_chain(genesis: dict[str, Any]) -> Any:
    """Return a py-evm chain that contains only the genesis block.

    Raises: ValueError if py-evm computes another state root than our code.
    """
    verified, _ = verified_genesis(genesis, ChainConfig.from_genesis(genesis))
    header = rlp.decode(verified.block.header.encode(), PragueBlockHeader)
    database = AtomicDB()
    before = PragueBlockHeader(
        difficulty=0, block_number=-1, gas_limit=0, timestamp=header.timestamp
    )
    state = PragueVM.build_state(database, before, ChainContext(CHAIN_ID))
    accounts = {
        address: {
            "balance": account.balance,
            "nonce": account.nonce,
            "code": account.code,
            "storage": account.storage,
        }
        for address, account in genesis_accounts(genesis).items()
    }
    apply_state_dict(state, accounts)
    state.persist()
    if state.state_root != header.state_root:
        raise ValueError("py-evm gives the genesis another state root")
    return PragueChain.from_genesis_header(database, header)


def main(folder: Path) -> None:
    """Run the racer on the chain in a folder, until standard input ends."""
    assert isinstance(KeyAPI().backend, CoinCurveECCBackend)
    token_chain = in_folder(folder)
    chain = open_chain(token_chain.genesis())
    with token_chain.blocks() as raw_blocks:

        def prepare(count: int) -> Callable[[], None]:
            blocks = [rlp.decode(raw, PragueBlock) for raw in islice(raw_blocks, count)]
            assert len(blocks) == count

            def work() -> None:
                for block in blocks:
                    chain.import_block(block)

            return work

        serve(prepare)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
