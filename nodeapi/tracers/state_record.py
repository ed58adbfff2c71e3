"""What a transaction touched, written down for its record in one pass.

One half is prestateTracer's usual answer, as `nodeapi.tracers.prestate` gives it, with
holes for code; the other tells what became of it (`nodeapi.tracers.details`).
"""

from __future__ import annotations

from collections.abc import Iterable

from nodeapi.evm.world import EMPTY_CODE_HASH
from nodeapi.tracers.details import encode_account, encode_slots, encode_value
from nodeapi.tracers.record import CODE
from nodeapi.tracers.touched import TouchedAccount

_CODE = f',"code":"0x{CODE.decode()}","codeHash":"0x'


def write_state(touched: Iterable[TouchedAccount], details: bytearray) -> str:
    """Return `prestate`, not packed yet, and add the rest to the details.

    touched: by address.
    """
    members = []
    for account in touched:
        slots = account.slots
        if encode_account(details, account):
            encode_slots(details, slots)
            continue
        nonce, balance, code_hash = account.before
        text = f'"0x{account.address.hex()}":{{"balance":"{hex(balance)}"'
        if code_hash != EMPTY_CODE_HASH:
            text += f'{_CODE}{code_hash.hex()}"'
        if nonce:
            text += f',"nonce":{nonce}'
        if slots:
            values = []
            for slot, old, new in slots:
                # Numbers with a format code take twice as long.
                name, word = slot.to_bytes(32, "big"), old.to_bytes(32, "big")
                values.append(f'"0x{name.hex()}":"0x{word.hex()}"')
                encode_value(details, old, new)
            text += f',"storage":{{{",".join(values)}}}'
        members.append(text + "}")
    return "{" + ",".join(members) + "}"
