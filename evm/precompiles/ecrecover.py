"""The address that signed a hash on secp256k1, with libsecp256k1.

py-evm's contract calls the same library, but takes twice the time to prepare it.
"""

from __future__ import annotations

from eth_utils.exceptions import ValidationError

from evm.precompiles.contract import Data, number, prefix
from evm.signatures import recover_address

GAS = 3000


def ecrecover(data: Data) -> bytes:
    """Return the signer's address padded to 32 bytes, or b"" for an invalid signature.

    data: the hash, v (27 or 28), r and s, 32 bytes each, padded with zeros.
    """
    v, r, s = (number(data, start, 32) for start in (32, 64, 96))
    try:
        address = recover_address(prefix(data, 32), v - 27, r, s)
    except ValidationError:
        return b""
    return address.rjust(32, b"\x00")
