"""Private keys, and the keystores in which they rest.

A keystore is a JSON document with the key encrypted under a passphrase. Deriving the
cipher's key from the passphrase is slow and takes memory by design (scrypt), and what a
file of somebody else's may demand of either is limited.
Source: https://ethereum.org/en/developers/docs/data-structures-and-encoding/web3-secret-storage/
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable
from typing import Any

from nodeapi.evm.signatures import CURVE_ORDER
from wallets.signing.turns import Turns

MAX_KEYSTORE_BYTES = 16 * 1024
"""Of a keystore as a file; real ones have some 500."""

MAX_SCRYPT_BYTES = 512 * 2**20
"""Memory that a keystore's scrypt may take: twice that of go-ethereum's."""

MAX_SCRYPT_WORK = 2**24
"""Likewise N·r·p, which is its time: eight times that of go-ethereum's."""

MAX_SCRYPT_BLOCKS = 1024
"""Likewise r·p, in blocks of 128 bytes that are derived at first and held until the end;
wallets use 8 to 64. That derivation's time grows with the square: 0.2 s for so many, and
minutes for what N·r·p allows where N is small."""

MAX_PBKDF2_ROUNDS = 10_000_000
"""Some five seconds; wallets use at most a million."""

DERIVATIONS_AT_ONCE = 2
"""In one process: each takes a processor, and 128 MiB with the usual parameters."""

WAITING_AT_MOST = 4
"""Who wait their turn in one process. Each is a page at work meanwhile, of which there are
eight at a time: some must be left for whoever opens no keystore."""

PATIENCE = 20.0
"""Seconds for which one waits its turn."""

_HEX = re.compile(r"[0-9a-fA-F]*")
_KEY = re.compile(r"(?:0x)?([0-9a-fA-F]{64})")
_turns = Turns(DERIVATIONS_AT_ONCE, WAITING_AT_MOST)


class WrongPassphrase(Exception):
    """Raised when a keystore does not open."""


def new_key() -> bytes:
    """Return a private key that nobody else has: 32 bytes."""
    from eth_account import Account

    return bytes(Account.create().key)


def read_key(text: str) -> bytes:
    """Return the private key that 64 hexadecimal digits are.

    Raises: ValueError; it does not repeat what it was given.
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
    """Return a keystore that opens with a passphrase.

    scrypt_n: CPU and memory cost, a power of two; memory is 1024 times as many bytes.
    owner: who waits for it, among whom turns are shared fairly.
    Raises: TooBusy.
    """
    from eth_account import Account

    with _turns.turn(owner, PATIENCE):
        made = Account.encrypt(key, passphrase, kdf="scrypt", iterations=scrypt_n)
    return dict(made)


def decrypt(keystore: dict[str, Any], passphrase: str, *, owner: Hashable) -> bytes:
    """Return a keystore's private key.

    keystore: one that was made here, or that `read_keystore` has let pass.
    owner: as for `encrypt`.
    Raises: WrongPassphrase; TooBusy.
    """
    from eth_account import Account

    with _turns.turn(owner, PATIENCE):
        try:
            return read_key(bytes(Account.decrypt(keystore, passphrase)).hex())
        except ValueError as error:
            raise WrongPassphrase from error


def read_keystore(text: str) -> dict[str, Any]:
    """Return the keystore that a file's text is.

    Raises: ValueError, saying what is wrong with it.
    """
    if len(text) > MAX_KEYSTORE_BYTES:
        raise ValueError("not a keystore: it is too long")
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError("not a keystore: it is not JSON") from error
    if not isinstance(document, dict):
        raise ValueError("not a keystore: a JSON object was expected")
    crypto = _lowered(_lowered(document).get("crypto"))
    if _lowered(document).get("version") != 3 or not crypto:
        raise ValueError("not a keystore of version 3")
    parameters = _lowered(crypto.get("cipherparams"))
    if crypto.get("cipher") != "aes-128-ctr" or not _is_hex(parameters.get("iv"), 16):
        raise ValueError("the keystore's cipher is not AES-128-CTR")
    if not _is_hex(crypto.get("ciphertext"), 32) or not _is_hex(crypto.get("mac"), 32):
        raise ValueError("the keystore holds no private key")
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
            raise ValueError("the keystore's scrypt parameters are none")
        if (
            128 * n * r > MAX_SCRYPT_BYTES
            or n * r * p > MAX_SCRYPT_WORK
            or r * p > MAX_SCRYPT_BLOCKS
        ):
            raise ValueError("the keystore's scrypt would take too much memory or time")
    elif name == "pbkdf2" and is_sound and c:
        if parameters.get("prf") != "hmac-sha256" or c > MAX_PBKDF2_ROUNDS:
            raise ValueError("the keystore's PBKDF2 is not usable here")
    else:
        raise ValueError("the keystore's key derivation is neither scrypt nor PBKDF2")


def _lowered(value: Any) -> dict[str, Any]:
    """Return an object with its names in lower case, as some wallets write `Crypto`."""
    return {k.lower(): v for k, v in value.items()} if isinstance(value, dict) else {}


def _is_hex(value: Any, size: int | None) -> bool:
    """Return whether something is bytes in hexadecimal; size None: at most 64."""
    if not isinstance(value, str) or not _HEX.fullmatch(value) or len(value) % 2:
        return False
    return len(value) <= 128 if size is None else len(value) == 2 * size
