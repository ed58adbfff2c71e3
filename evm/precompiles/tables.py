"""The precompiled contracts of each fork, by address."""

from __future__ import annotations

from evm.precompiles import (
    bls12_381,
    bn254,
    hashes,
    kzg,
    modexp,
    signatures,
)
from evm.precompiles.contract import Precompile, fixed

Table = dict[bytes, Precompile]


def _table(contracts: dict[int, Precompile]) -> Table:
    return {number.to_bytes(20, "big"): found for number, found in contracts.items()}


def _bn254(add: int, multiply: int, pairing: tuple[int, int]) -> Table:
    """Return the three contracts. pairing: base price, and price for each pair."""
    return _table(
        {
            0x06: Precompile(fixed(add), bn254.add),
            0x07: Precompile(fixed(multiply), bn254.multiply),
            0x08: Precompile(bn254.pairing_gas(*pairing), bn254.pairing),
        }
    )


FRONTIER = _table(
    {
        0x01: Precompile(fixed(signatures.ECRECOVER_GAS), signatures.ecrecover),
        0x02: Precompile(hashes.word_gas(60, 12), hashes.sha256),
        0x03: Precompile(hashes.word_gas(600, 120), hashes.ripemd160),
        0x04: Precompile(hashes.word_gas(15, 3), hashes.identity),
    }
)
BYZANTIUM = {
    **FRONTIER,
    **_table({0x05: Precompile(modexp.byzantium_gas, modexp.modexp)}),
    **_bn254(500, 40_000, (100_000, 80_000)),
}
ISTANBUL = {
    **BYZANTIUM,
    **_bn254(150, 6000, (45_000, 34_000)),  # EIP-1108
    **_table({0x09: Precompile(hashes.blake2_gas, hashes.blake2_compress)}),
}
BERLIN = {
    **ISTANBUL,
    **_table({0x05: Precompile(modexp.berlin_gas, modexp.modexp)}),
}
CANCUN = {
    **BERLIN,
    **_table({0x0A: Precompile(fixed(kzg.GAS), kzg.point_evaluation)}),
}
_bls = bls12_381
PRAGUE = {
    **CANCUN,
    **_table(
        {
            0x0B: Precompile(fixed(_bls.G1_ADD_GAS), _bls.g1_add),
            0x0C: Precompile(_bls.g1_msm_gas, _bls.g1_msm),
            0x0D: Precompile(fixed(_bls.G2_ADD_GAS), _bls.g2_add),
            0x0E: Precompile(_bls.g2_msm_gas, _bls.g2_msm),
            0x0F: Precompile(_bls.pairing_gas, _bls.pairing),
            0x10: Precompile(fixed(_bls.MAP_TO_G1_GAS), _bls.map_to_g1),
            0x11: Precompile(fixed(_bls.MAP_TO_G2_GAS), _bls.map_to_g2),
        }
    ),
}
OSAKA = {
    **PRAGUE,
    **_table(
        {
            0x05: Precompile(modexp.osaka_gas, modexp.limited_modexp),
            0x100: Precompile(fixed(signatures.P256_GAS), signatures.p256_verify),
        }
    ),
}
