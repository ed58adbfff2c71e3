"""The gas table of each fork, for instructions and tracers.

A table has the prices that depend on the fork. `evm.gas` has those that never changed.

Sources: Yellow Paper, appendix G; go-ethereum, core/vm/jump_table.go;
https://eips.ethereum.org/EIPS/eip-150 · eip-160 · eip-1283 · eip-1884 · eip-2200 ·
eip-2929 · eip-3529 · eip-3860
"""

from __future__ import annotations

from typing import NamedTuple

from evm.gas import (
    COLD_SLOT_GAS,
    INIT_CODE_WORD_GAS,
    SELFDESTRUCT_GAS,
    WARM_GAS,
    StorePrices,
)
from evm.opcodes import NUMBERS, OPCODES

ACCOUNT_ACCESSES = (
    *("BALANCE", "EXTCODESIZE", "EXTCODECOPY", "EXTCODEHASH"),
    *("CALL", "CALLCODE", "DELEGATECALL", "STATICCALL"),
)
"""Opcodes that read an account. From Berlin on, the first access costs more."""

_ACCESSES = frozenset(NUMBERS[name] for name in (*ACCOUNT_ACCESSES, "SLOAD"))


class GasTable(NamedTuple):
    """The prices of one fork."""

    base: tuple[int, ...]
    """Price by opcode number, without the parts that depend on operands and state.
    Opcodes that the fork does not have are included."""
    exp_byte: int = 10
    """Gas per byte of EXP's exponent."""
    store: StorePrices | None = None
    """Prices of SSTORE. If None, its price depends on the present value only."""
    init_code_word: int = 0
    """Gas per word of init code."""
    has_access_prices: bool = False
    """Whether the first access to an account or slot costs more (EIP-2929). If so, `base`
    has the price of later accesses."""

    def charged_first(self, number: int) -> int:
        """Return the gas that is charged before an opcode's function is called.

        If accesses have prices, functions that access charge the whole price.
        """
        if self.has_access_prices and number in _ACCESSES:
            return 0
        return self.base[number]

    def repriced(self, **prices: int) -> GasTable:
        """Return a copy of the table with these base prices, by opcode name."""
        base = list(self.base)
        for name, gas in prices.items():
            base[NUMBERS[name]] = gas
        return self._replace(base=tuple(base))


_NET_STORE = StorePrices(unchanged=200, set=20_000, reset=5000, clear_refund=15_000)
_ISTANBUL_STORE = _NET_STORE._replace(unchanged=800, sentry=2300)
_BERLIN_STORE = _ISTANBUL_STORE._replace(
    unchanged=WARM_GAS, reset=5000 - COLD_SLOT_GAS, cold=COLD_SLOT_GAS
)
_LONDON_STORE = _BERLIN_STORE._replace(clear_refund=4800)

FRONTIER = GasTable(tuple(opcode.gas for opcode in OPCODES))
TANGERINE_WHISTLE = FRONTIER.repriced(
    BALANCE=400,
    EXTCODESIZE=700,
    EXTCODECOPY=700,
    SLOAD=200,
    CALL=700,
    CALLCODE=700,
    DELEGATECALL=700,
    SELFDESTRUCT=SELFDESTRUCT_GAS,
)
SPURIOUS_DRAGON = TANGERINE_WHISTLE._replace(exp_byte=50)
CONSTANTINOPLE = SPURIOUS_DRAGON._replace(store=_NET_STORE)
PETERSBURG = SPURIOUS_DRAGON
"""Petersburg's prices, without Constantinople's prices of storage."""
ISTANBUL = PETERSBURG._replace(store=_ISTANBUL_STORE).repriced(
    BALANCE=700, SLOAD=800, EXTCODEHASH=700
)
BERLIN = ISTANBUL._replace(store=_BERLIN_STORE, has_access_prices=True).repriced(
    SLOAD=WARM_GAS, **dict.fromkeys(ACCOUNT_ACCESSES, WARM_GAS)
)
LONDON = BERLIN._replace(store=_LONDON_STORE)
SHANGHAI = LONDON._replace(init_code_word=INIT_CODE_WORD_GAS)
