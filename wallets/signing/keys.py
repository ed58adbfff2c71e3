"""Private keys and keystores.

A keystore is a JSON document with the key encrypted under a passphrase. Deriving the
cipher's key is slow and takes memory by design (scrypt). Limits apply to the cost that
an imported file may demand.
Source:
    https://ethereum.org/en/developers/docs/data-structures-and-encoding/web3-secret-storage/
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable
from typing import Any

from evm.signatures import CURVE_ORDER
from wallets.signing.turns import Turns

MAX_KEYSTORE_BYTES = 16 * 1024
"""Size limit of a keystore file; usual ones have about 500 bytes."""

MAX_SCRYPT_BYTES = 512 * 2**20
"""Limit of the memory of a keystore's scrypt: twice that of go-ethereum's."""

MAX_SCRYPT_WORK = 2**24
"""Limit of N·r·p, which determines the time of scrypt: eight times that of
go-ethereum's."""

MAX_SCRYPT_BLOCKS = 1024
"""Limit of r·p. Scrypt first derives r·p blocks of 128 bytes with PBKDF2; wallets use 8
to 64. This derivation's time grows with the square of r·p: it takes 0.2 s at the
limit, and would take minutes for values that N·r·p allows if N is small."""

MAX_PBKDF2_ROUNDS = 10_000_000
"""Limit of PBKDF2's iterations, about five seconds; wallets use at most a million."""

MAX_DERIVATIONS = 2
"""Derivations at the same time in one process: each takes a core, and 128 MiB with
usual parameters."""

MAX_WAITING = 4
"""Derivations that may wait in one process. Each occupies one of the eight threads for
pages, and some threads must be left for other pages."""

TURN_SECONDS = 20.0
"""Seconds for which a derivation waits for its turn."""

_HEX = re.compile(r"[0-9a-fA-F]*")
_KEY = re.compile(r"(?:0x)?([0-9a-fA-F]{64})")
turns = Turns(MAX_DERIVATIONS, MAX_WAITING)


class WrongPassphrase(Exception):
    """Raised when a passphrase does not decrypt a keystore."""


def new_key() -> bytes:
    """Return a new random private key: 32 bytes."""
    from eth_account import Account

    return bytes(Account.create().key)


def read_key(text: str) -> bytes:
    """Return the private key written as 64 hexadecimal digits, with or without 0x.

    Raises: ValueError, whose message does not contain the input.
    """
    found = _KEY.fullmatch(text.strip())
    if found is None or not 0 < int(found[1], 16) < CURVE_ORDER:
        raise ValueError("not a private key: 64 hexadecimal digits were expected")
    return bytes.fromhex(found[1])


def address_of(key: bytes) -> str:
    """Return a key's address, in lower case."""
    from eth_account import Account

    return str(Account.from_key(key).address).lower()


def encrypt(
    key: bytes, passphrase: str, *, scrypt_n: int, owner: Hashable
) -> dict[str, Any]:
    """Return a keystore document for a key and a passphrase.

    scrypt_n: CPU and memory cost, a power of two; it takes 1024 times as many bytes.
    owner: identifies the user; turns are shared fairly among owners.
    Raises: TooBusy.
    """
    from eth_account import Account

    with turns.turn(owner, TURN_SECONDS):
        made = Account.encrypt(key, passphrase, kdf="scrypt", iterations=scrypt_n)
    return dict(made)


def decrypt(keystore: dict[str, Any], passphrase: str, *, owner: Hashable) -> bytes:
    """Return a keystore's private key.

    keystore: from `encrypt` or `read_keystore`.
    owner: as for `encrypt`.
    Raises: WrongPassphrase; TooBusy.
    """
    from eth_account import Account

    with turns.turn(owner, TURN_SECONDS):
        try:
            return read_key(bytes(Account.decrypt(keystore, passphrase)).hex())
        except ValueError as error:
            raise WrongPassphrase from error


def read_keystore(text: str) -> dict[str, Any]:
    """Return the keystore in a file's text.

    Raises: ValueError with the reason, as a sentence.
    """
    if len(text) > MAX_KEYSTORE_BYTES:
        raise ValueError("This is not a keystore: it is too long.")
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError("This is not a keystore: it is not JSON.") from error
    if not isinstance(document, dict):
        raise ValueError("This is not a keystore: a JSON object was expected.")
    crypto = _lowered(_lowered(document).get("crypto"))
    if _lowered(document).get("version") != 3 or not crypto:
        raise ValueError("This is not a keystore of version 3.")
    parameters = _lowered(crypto.get("cipherparams"))
    if crypto.get("cipher") != "aes-128-ctr" or not _is_hex(parameters.get("iv"), 16):
        raise ValueError("The keystore's cipher is not AES-128-CTR.")
    if not _is_hex(crypto.get("ciphertext"), 32) or not _is_hex(crypto.get("mac"), 32):
        raise ValueError("The keystore contains no private key.")
    _check_derivation(crypto.get("kdf"), _lowered(crypto.get("kdfparams")))
    return document


def _check_derivation(name: Any, parameters: dict[str, Any]) -> None:
    numbers = {
        key: parameters.get(key) for key in ("n", "r", "p", "c") if key in parameters
    }
    is_sound = (
        all(type(number) is int and number > 0 for number in numbers.values())
        and type(parameters.get("dklen")) is int
        and parameters["dklen"] == 32
        and _is_hex(parameters.get("salt"), None)
    )
    n, r, p, c = (numbers.get(key) or 0 for key in ("n", "r", "p", "c"))
    if name == "scrypt" and is_sound and n and r and p:
        is_power = n & (n - 1) == 0 and n > 1
        if not is_power:
            raise ValueError("The keystore's scrypt parameters are invalid.")
        if (
            128 * n * r > MAX_SCRYPT_BYTES
            or n * r * p > MAX_SCRYPT_WORK
            or r * p > MAX_SCRYPT_BLOCKS
        ):
            raise ValueError(
                "The keystore's scrypt parameters need too much memory or time."
            )
    elif name == "pbkdf2" and is_sound and c:
        if parameters.get("prf") != "hmac-sha256" or c > MAX_PBKDF2_ROUNDS:
            raise ValueError("The keystore's PBKDF2 parameters are not supported.")
    else:
        raise ValueError("The keystore's key derivation is neither scrypt nor PBKDF2.")


def _lowered(value: Any) -> dict[str, Any]:
    """Return an object with lower-case member names: some wallets write `Crypto`."""
    return {k.lower(): v for k, v in value.items()} if isinstance(value, dict) else {}


def _is_hex(value: Any, size: int | None) -> bool:
    """Return whether a value is `size` bytes in hexadecimal, at most 64 if None."""
    if not isinstance(value, str) or not _HEX.fullmatch(value) or len(value) % 2:
        return False
    return len(value) <= 128 if size is None else len(value) == 2 * size
