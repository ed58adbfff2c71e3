"""Random blocks of Amsterdam that geth builds."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eth_typing import Address

from evm.blocks import decode_block
from tests.golden.geth import Geth, exported, running_geth
from tests.support.random_arguments import text
from tests.support.random_blocks import (
    FIRST_OF_AMSTERDAM,
    GAS_LIMIT,
    Attributes,
    RandomBlocks,
    network_form,
)


@dataclass
class RandomChain:
    """Blocks that geth has built, and how many of what."""

    genesis: dict[str, Any]
    raw: list[bytes] = field(default_factory=list)
    """Blocks after the genesis, without access lists."""
    exported: bytes = b""
    """The output of `geth export`: from Amsterdam on, with access lists."""
    refused: list[str] = field(default_factory=list)
    """geth's reasons for refusing a block, whose number then has another one."""


def build(binary: str, folder: Path, seed: int, blocks: int) -> RandomChain:
    """Let geth build a random chain. folder: empty, for geth's files."""
    chain = RandomChain(RandomBlocks.genesis(seed))
    apis = "eth,debug,testing"
    with running_geth(binary, chain.genesis, b"", folder, apis=apis) as geth:

        def nonce(address: Address) -> int:
            return int(
                _result(geth, "eth_getTransactionCount", text(address), "latest"), 16
            )

        maker = RandomBlocks(seed, nonce)
        while len(chain.raw) < blocks:
            number = len(chain.raw) + 1
            made = [text(network_form(each)) for each in maker.transactions(number)]
            attributes = _payload_attributes(number, maker.attributes(number))
            answer = geth.call("testing_commitBlockV1", [attributes, made, None])
            if "error" in answer:
                chain.refused.append(answer["error"]["message"])
                continue
            raw = bytes.fromhex(_result(geth, "debug_getRawBlock", hex(number))[2:])
            assert text(decode_block(raw).header.hash) == answer["result"]
            chain.raw.append(raw)
    chain.exported = exported(binary, folder)
    return chain


def _result(geth: Geth, method: str, *params: Any) -> Any:
    answer = geth.call(method, list(params))
    assert "error" not in answer, answer
    return answer["result"]


def _payload_attributes(number: int, given: Attributes) -> dict[str, Any]:
    made: dict[str, Any] = {
        "timestamp": hex(given.timestamp),
        "prevRandao": text(given.mix_hash),
        "suggestedFeeRecipient": text(given.coinbase),
        "withdrawals": [
            {
                "index": hex(each.index),
                "validatorIndex": hex(each.validator_index),
                "address": text(each.address),
                "amount": hex(each.amount_gwei),
            }
            for each in given.withdrawals
        ],
        "parentBeaconBlockRoot": text(given.parent_beacon_root),
    }
    if number >= FIRST_OF_AMSTERDAM:
        made["slotNumber"] = hex(7 * number)
        made["targetGasLimit"] = hex(GAS_LIMIT)
    return made
