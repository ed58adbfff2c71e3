"""Random payloads of eth_simulateV1, with random contracts as overrides."""

from __future__ import annotations

import random
from typing import Any

from evm.hexadecimal import to_hex
from evm.rules.fork import Fork
from evm.transactions import CREATE_ADDRESS, Transaction
from tests.support.executed import SENDER
from tests.support.random_arguments import word
from tests.support.random_calls import (
    CONTRACTS,
    OTHERS,
    random_accounts,
    random_transaction,
)

_MOVED = b"\xab" * 20
_PRECOMPILES = [n.to_bytes(20, "big") for n in range(1, 10)]


class RandomPayloads:
    """Makes payloads whose contracts call, create, destroy, log and fail."""

    def __init__(self, seed: int, fork: Fork) -> None:
        """fork: the one whose instructions the contracts have."""
        self._choose = random.Random(seed)
        self._fork = fork

    def payload(self) -> dict[str, Any]:
        """Return the next payload."""
        blocks = [self._block(is_first=True)]
        for _ in range(self._choose.randrange(3)):
            blocks.append(self._block(is_first=False))
        return {
            "blockStateCalls": blocks,
            "validation": self._is_rare(),
            "returnFullTransactions": self._choose.random() < 0.5,
            "traceTransfers": self._choose.random() < 0.8,
        }

    def _is_rare(self) -> bool:
        return self._choose.random() < 0.15

    def _block(self, *, is_first: bool) -> dict[str, Any]:
        choose = self._choose
        overrides: dict[str, Any] = {}
        for name, value in (
            ("gasLimit", hex(choose.choice([2_000_000, 60_000_000]))),
            ("feeRecipient", to_hex(choose.choice(CONTRACTS + OTHERS))),
            ("prevRandao", to_hex(choose.randbytes(32))),
            ("baseFeePerGas", hex(choose.choice([0, 7, 10**9]))),
            ("blobBaseFee", hex(choose.choice([0, 1, 5]))),
            ("beaconRoot", to_hex(choose.randbytes(32))),
        ):
            if self._is_rare():
                overrides[name] = value
        if self._is_rare():
            overrides["withdrawals"] = [self._withdrawal() for _ in range(2)]
        calls = [self._call() for _ in range(choose.randrange(5))]
        return {
            "blockOverrides": overrides,
            "stateOverrides": self._state(is_first),
            "calls": calls,
        }

    def _withdrawal(self) -> dict[str, str]:
        choose = self._choose
        return {
            "index": "0x1",
            "validatorIndex": "0x2",
            "address": to_hex(choose.choice(CONTRACTS + OTHERS)),
            "amount": hex(choose.choice([0, 3])),
        }

    def _state(self, is_first: bool) -> dict[str, Any]:
        """Return state overrides. Those of the first block contain all contracts."""
        choose = self._choose
        found: dict[str, Any] = {}
        accounts = random_accounts(choose, self._fork)
        for address, account in accounts.items():
            if not is_first and not self._is_rare():
                continue
            member = choose.choice(["state", "stateDiff"])
            found[to_hex(address)] = {
                "balance": hex(account.balance),
                "nonce": hex(account.nonce),
                "code": to_hex(account.code),
                member: {word(slot): word(v) for slot, v in account.storage.items()},
            }
        if is_first:
            found[to_hex(SENDER)] = {"balance": hex(10**20)}
        if self._is_rare():
            moved = {"movePrecompileToAddress": to_hex(_MOVED)}
            found[to_hex(choose.choice(_PRECOMPILES))] = moved
        return found

    def _call(self) -> dict[str, Any]:
        choose = self._choose
        transaction = random_transaction(choose, self._fork, 0)
        call: dict[str, Any] = {
            "from": to_hex(SENDER),
            "value": hex(transaction.value),
            "input": to_hex(transaction.data),
            **_receiver(transaction),
        }
        if choose.random() < 0.7:
            call["gas"] = hex(transaction.gas)
        for name, value in (
            ("gasPrice", hex(choose.choice([0, 10**9]))),
            ("maxFeePerGas", hex(choose.choice([0, 10**9]))),
            ("nonce", hex(choose.randrange(3))),
            (
                "accessList",
                [{"address": to_hex(CONTRACTS[0]), "storageKeys": [word(1)]}],
            ),
            ("from", to_hex(choose.choice(CONTRACTS))),
        ):
            if self._is_rare():
                call[name] = value
        if "to" in call and self._is_rare():
            call["blobVersionedHashes"] = [to_hex(b"\x01" + choose.randbytes(31))]
            call["maxFeePerBlobGas"] = hex(choose.choice([0, 10]))
        return call


def _receiver(transaction: Transaction) -> dict[str, Any]:
    """Return the members that a creation does not have."""
    if transaction.to == CREATE_ADDRESS:
        return {}
    members: dict[str, Any] = {"to": to_hex(transaction.to)}
    if transaction.authorization_list:
        members["authorizationList"] = [
            {
                "chainId": hex(each.chain_id),
                "address": to_hex(each.address),
                "nonce": hex(each.nonce),
                "yParity": hex(each.y_parity),
                "r": hex(each.r),
                "s": hex(each.s),
            }
            for each in transaction.authorization_list
        ]
    return members
