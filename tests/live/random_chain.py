"""Random blocks of Amsterdam that geth builds."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eth_typing import Address

from evm.blocks import decode_block
from evm.hexadecimal import to_hex
from tests.golden.geth import Geth, exported, running_geth
from tests.support.random_blocks import (
    FIRST_OF_AMSTERDAM,
    GAS_LIMIT,
    Attributes,
    RandomBlocks,
    network_form,
)

APIS = "eth,debug,testing"
"""What geth has to serve, so that it builds blocks on request."""


class Building:
    """A geth that builds random blocks on its head.

    refused: geth's reasons for refusing a block, in whose place it has built another one.
    """

    def __init__(self, geth: Geth, seed: int) -> None:
        self._geth = geth
        self._maker = RandomBlocks(seed, self._nonce)
        self.refused: list[str] = []

    def build(self, place: int) -> bytes:
        """Build a block, and return it without its access list.

        place: determines its timestamp, and by that its fork. It is the block's number,
            unless blocks were removed.
        """
        while True:
            made = [
                to_hex(network_form(each)) for each in self._maker.transactions(place)
            ]
            attributes = _payload_attributes(place, self._maker.attributes(place))
            answer = self._geth.call("testing_commitBlockV1", [attributes, made, None])
            if "error" not in answer:
                break
            self.refused.append(answer["error"]["message"])
        found = _result(self._geth, "debug_getRawBlock", "latest")
        raw = bytes.fromhex(found[2:])
        assert to_hex(decode_block(raw).header.hash) == answer["result"]
        return raw

    def _nonce(self, address: Address) -> int:
        found = _result(
            self._geth, "eth_getTransactionCount", to_hex(address), "latest"
        )
        return int(found, 16)


@dataclass
class RandomChain:
    """Blocks that geth has built, and how many of what."""

    genesis: dict[str, Any]
    raw: list[bytes] = field(default_factory=list)
    """Blocks after the genesis, without access lists."""
    exported: bytes = b""
    """The output of `geth export`: from Amsterdam on, with access lists."""
    refused: list[str] = field(default_factory=list)
    """See `Building`."""


def build(binary: str, folder: Path, seed: int, blocks: int) -> RandomChain:
    """Let geth build a random chain. folder: empty, for geth's files."""
    chain = RandomChain(RandomBlocks.genesis(seed))
    with running_geth(binary, chain.genesis, b"", folder, apis=APIS) as geth:
        building = Building(geth, seed)
        chain.raw += [building.build(number) for number in range(1, blocks + 1)]
    chain.refused = building.refused
    chain.exported = exported(binary, folder)
    return chain


def _result(geth: Geth, method: str, *params: Any) -> Any:
    answer = geth.call(method, list(params))
    assert "error" not in answer, answer
    return answer["result"]


def _payload_attributes(place: int, given: Attributes) -> dict[str, Any]:
    made: dict[str, Any] = {
        "timestamp": hex(given.timestamp),
        "prevRandao": to_hex(given.mix_hash),
        "suggestedFeeRecipient": to_hex(given.coinbase),
        "withdrawals": [
            {
                "index": hex(each.index),
                "validatorIndex": hex(each.validator_index),
                "address": to_hex(each.address),
                "amount": hex(each.amount_gwei),
            }
            for each in given.withdrawals
        ],
        "parentBeaconBlockRoot": to_hex(given.parent_beacon_root),
    }
    if place >= FIRST_OF_AMSTERDAM:
        made["slotNumber"] = hex(7 * place)
        made["targetGasLimit"] = hex(GAS_LIMIT)
    return made
