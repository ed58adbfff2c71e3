"""Random arguments of calls: transaction objects, and overrides with random contracts."""

from __future__ import annotations

import random
from typing import Any

from evm.hexadecimal import to_hex
from evm.rules.fork import Fork
from evm.transactions import CREATE_ADDRESS
from tests.support.executed import SENDER
from tests.support.random_calls import random_accounts, random_transaction


def word(value: int) -> str:
    return f"0x{value:064x}"


class RandomArguments:
    """Creates random arguments of calls."""

    def __init__(self, seed: int, fork: Fork) -> None:
        """fork: the one whose instructions the contracts have."""
        self._choose = random.Random(seed)
        self._fork = fork

    def state(self) -> dict[str, Any]:
        """Return state overrides."""
        accounts = {
            to_hex(address): {
                "balance": hex(account.balance),
                "nonce": hex(account.nonce),
                "code": to_hex(account.code),
                "stateDiff": {word(k): word(v) for k, v in account.storage.items()},
            }
            for address, account in random_accounts(self._choose, self._fork).items()
        }
        accounts[to_hex(SENDER)] = {"balance": hex(10**21)}
        if self._choose.random() < 0.1:
            accounts[to_hex(b"\4".rjust(20, b"\0"))] = {
                "movePrecompileToAddress": to_hex(b"\xab" * 20)
            }
        return accounts

    def block(self, number: int) -> dict[str, Any]:
        """Return block overrides for a call after a block."""
        choose = self._choose
        values = {
            "number": hex(choose.choice([number + 1, number + 2, number])),
            "feeRecipient": to_hex(b"\xfe" * 20),
            "baseFeePerGas": hex(choose.choice([0, 7, 10**9])),
            "prevRandao": word(choose.randrange(2**256)),
            "gasLimit": hex(choose.randrange(2**32)),
            "beaconRoot": word(1),
        }
        weights = {"beaconRoot": 0.02}
        return {
            name: value
            for name, value in values.items()
            if choose.random() < weights.get(name, 0.4)
        }

    def call(self) -> dict[str, Any]:
        """Return a transaction object, whose sender has ether by the overrides."""
        choose = self._choose
        made = random_transaction(choose, self._fork, 0)
        call: dict[str, Any] = {
            "from": to_hex(made.sender),
            "input": to_hex(made.data),
            "value": hex(made.value),
        }
        if made.to != CREATE_ADDRESS:
            call["to"] = to_hex(made.to)
        if choose.random() < 0.8:
            call["gas"] = hex(choose.choice([made.gas, made.gas, 25_000, 20_000]))
        price = choose.random()
        if price < 0.15:
            call["gasPrice"] = hex(choose.choice([0, 1, 10**10]))
        elif price < 0.3:
            call["maxFeePerGas"] = hex(choose.choice([0, 10**9, 10**11]))
            call["maxPriorityFeePerGas"] = hex(choose.choice([0, 1, 10**9]))
        if made.authorization_list and "gasPrice" not in call and "to" in call:
            call["authorizationList"] = [
                {
                    "chainId": hex(each.chain_id),
                    "address": to_hex(each.address),
                    "nonce": hex(each.nonce),
                    "yParity": hex(each.y_parity),
                    "r": hex(each.r),
                    "s": hex(each.s),
                }
                for each in made.authorization_list
            ]
        return call
