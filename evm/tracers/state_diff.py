"""Parity's `stateDiff`: the accounts and slots that a transaction changed.

A changed value is `{"*":{"from":…,"to":…}}`, an unchanged one `"="`. The values of a new
account are `{"+":…}`, those of a removed one `{"-":…}`. Unchanged accounts are omitted.

Source: https://openethereum.github.io/JSONRPC-trace-module
"""

from __future__ import annotations

from collections.abc import Iterable

from evm.tracers.prestate import CodeText
from evm.tracers.touched import EMPTY, Slot, TouchedAccount
from evm.world import EMPTY_CODE_HASH, Account


def state_diff_json(touched: Iterable[TouchedAccount], code: CodeText) -> str:
    """Return the changes as a JSON object, by address.

    An account that is empty before or afterwards counts as absent, as in EIP-161.
    """
    members = []
    for account in touched:
        changed = [slot for slot in account.slots if slot[1] != slot[2]]
        if account.before == account.after and not changed:
            continue
        members.append(_account(account, changed, code))
    return "{" + ",".join(members) + "}"


def _account(account: TouchedAccount, changed: Iterable[Slot], code: CodeText) -> str:
    before, after = account.before, account.after
    if before == EMPTY:
        text = _of_one_side("+", after, [(key, new) for key, _, new in changed], code)
    elif after == EMPTY:
        text = _of_one_side("-", before, [(key, old) for key, old, _ in changed], code)
    else:
        text = _changes(before, after, changed, code)
    return f'"0x{account.address.hex()}":{{{text}}}'


def _of_one_side(
    sign: str, account: Account, slots: Iterable[tuple[int, int]], code: CodeText
) -> str:
    """Return the members of a new or removed account. sign: `+` or `-`."""
    storage = ",".join(
        [f'"0x{slot:064x}":{{"{sign}":"0x{value:064x}"}}' for slot, value in slots]
    )
    return (
        f'"balance":{{"{sign}":"{account.balance:#x}"}}'
        f',"code":{{"{sign}":"0x{_digits(account, code)}"}}'
        f',"nonce":{{"{sign}":"{account.nonce:#x}"}}'
        f',"storage":{{{storage}}}'
    )


def _changes(
    before: Account, after: Account, changed: Iterable[Slot], code: CodeText
) -> str:
    """Return the members of an account that exists before and afterwards."""
    has_other_code = before.code_hash != after.code_hash
    codes = ("", "")
    if has_other_code:
        codes = _digits(before, code), _digits(after, code)
    storage = ",".join(
        [
            f'"0x{slot:064x}":{_change(f"0x{old:064x}", f"0x{new:064x}")}'
            for slot, old, new in changed
        ]
    )
    return (
        f'"balance":{_value(hex(before.balance), hex(after.balance))}'
        f',"code":{_change(f"0x{codes[0]}", f"0x{codes[1]}") if has_other_code else _SAME}'
        f',"nonce":{_value(hex(before.nonce), hex(after.nonce))}'
        f',"storage":{{{storage}}}'
    )


_SAME = '"="'


def _value(before: str, after: str) -> str:
    return _SAME if before == after else _change(before, after)


def _change(before: str, after: str) -> str:
    return f'{{"*":{{"from":"{before}","to":"{after}"}}}}'


def _digits(account: Account, code: CodeText) -> str:
    """Return the hex digits of an account's code."""
    return "" if account.code_hash == EMPTY_CODE_HASH else code(account.code_hash)
