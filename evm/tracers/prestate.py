"""prestateTracer: the state that a transaction reads, and its changes.

Source: go-ethereum, eth/tracers/native/prestate.go
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import orjson
from eth_typing import Hash32

from evm.tracers.record import CODE
from evm.tracers.touched import EMPTY, Slot, TouchedAccount
from evm.world import EMPTY_CODE_HASH, Account

CodeText = Callable[[bytes], str]
"""Code hash → the code in hex digits, or a placeholder for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrestateConfig:
    """The `tracerConfig` of prestateTracer."""

    diff_mode: bool = False
    disable_code: bool = False
    disable_storage: bool = False
    include_empty: bool = False


def code_text(codes: Mapping[bytes, bytes]) -> CodeText:
    """Return a function that looks up code by hash, and returns its hex digits."""
    return lambda code_hash: codes[code_hash].hex() if code_hash in codes else ""


def prestate_json(
    touched: Iterable[TouchedAccount], config: PrestateConfig, code: CodeText
) -> str:
    """Return the tracer's result as JSON."""
    if config.diff_mode:
        return _difference(touched, config, code)
    members = [
        _account(account.address, account.before, account.slots, config, code)
        for account in touched
        if account.before != EMPTY or config.include_empty
    ]
    return "{" + ",".join(members) + "}"


def _account(
    address: bytes,
    account: Account,
    slots: Sequence[Slot],
    config: PrestateConfig,
    code: CodeText,
) -> str:
    """Return one member of the result: an account's state before the transaction."""
    nonce, balance, code_hash = account
    text = f'"0x{address.hex()}":{{"balance":"{hex(balance)}"'
    if code_hash != EMPTY_CODE_HASH:
        if not config.disable_code:
            text += f',"code":"0x{code(code_hash)}"'
        text += f',"codeHash":"0x{code_hash.hex()}"'
    if nonce:
        text += f',"nonce":{nonce}'
    if slots and not config.disable_storage:
        values = [_slot(slot, old) for slot, old, _ in slots]
        text += f',"storage":{{{",".join(values)}}}'
    return text + "}"


def _slot(slot: int, value: int) -> str:
    # Formatting integers takes twice as long.
    name, word = slot.to_bytes(32, "big"), value.to_bytes(32, "big")
    return f'"0x{name.hex()}":"0x{word.hex()}"'


def _difference(
    touched: Iterable[TouchedAccount], config: PrestateConfig, code: CodeText
) -> str:
    before, after = [], []
    for account in touched:
        is_new, slots = account.before == EMPTY, account.slots
        if account.is_destroyed:
            # It is only in `pre`, with all touched slots, including zero ones.
            if not is_new:
                before.append(
                    _account(account.address, account.before, slots, config, code)
                )
            continue
        changed = [] if config.disable_storage else [s for s in slots if s[1] != s[2]]
        if account.before == account.after and not changed:
            continue
        after.append(_changes(account, changed, config, code))
        if not is_new:
            values = [slot for slot in changed if slot[1]]
            before.append(
                _account(account.address, account.before, values, config, code)
            )
    return f'{{"post":{{{",".join(after)}}},"pre":{{{",".join(before)}}}}}'


def _changes(
    account: TouchedAccount,
    changed: Iterable[Slot],
    config: PrestateConfig,
    code: CodeText,
) -> str:
    """Return the account's state afterwards as JSON, changed fields only."""
    before, after = account.before, account.after
    members = []
    if before.balance != after.balance:
        members.append(f'"balance":"{after.balance:#x}"')
    if before.code_hash != after.code_hash:
        if not config.disable_code:
            is_empty = after.code_hash == EMPTY_CODE_HASH
            text = "" if is_empty else code(after.code_hash)
            members.append(f'"code":"0x{text}"')
        members.append(f'"codeHash":"0x{after.code_hash.hex()}"')
    if before.nonce != after.nonce and after.nonce:
        members.append(f'"nonce":{after.nonce}')
    values = [_slot(slot, new) for slot, _, new in changed if new]
    if values:
        members.append(f'"storage":{{{",".join(values)}}}')
    return f'"0x{account.address.hex()}":{{{",".join(members)}}}'


def read_prestate(text: bytes) -> list[TouchedAccount]:
    """Parse a result without `diffMode` into accounts. `after` is set to `before`.

    text: the JSON. Code may be omitted.
    """
    touched = []
    # Placeholders are not valid JSON.
    for address, members in orjson.loads(text.replace(CODE, b"")).items():
        code_hash = members.get("codeHash")
        account = Account(
            members.get("nonce", 0),
            int(members["balance"], 16),
            EMPTY_CODE_HASH
            if code_hash is None
            else Hash32(bytes.fromhex(code_hash[2:])),
        )
        slots = [
            (int(slot, 16), int(value, 16), int(value, 16))
            for slot, value in members.get("storage", {}).items()
        ]
        touched.append(
            TouchedAccount(bytes.fromhex(address[2:]), account, account, slots)
        )
    return touched
