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
from evm.precompiles.contract import Precompile, contract, fixed

Table = dict[bytes, Precompile]


def _table(contracts: dict[int, Precompile]) -> Table:
    return {number.to_bytes(20, "big"): found for number, found in contracts.items()}


def _bn254(add: int, multiply: int, pairing: tuple[int, int]) -> Table:
    """Return the three contracts. pairing: base price, and price for each pair."""
    return _table(
        {
            0x06: contract("BN254_ADD", fixed(add), bn254.add),
            0x07: contract("BN254_MUL", fixed(multiply), bn254.multiply),
            0x08: contract("BN254_PAIRING", bn254.pairing_gas(*pairing), bn254.pairing),
        }
    )


FRONTIER = _table(
    {
        0x01: contract("ECREC", fixed(signatures.ECRECOVER_GAS), signatures.ecrecover),
        0x02: contract("SHA256", hashes.word_gas(60, 12), hashes.sha256),
        0x03: contract("RIPEMD160", hashes.word_gas(600, 120), hashes.ripemd160),
        0x04: contract("IDENTITY", hashes.word_gas(15, 3), hashes.identity),
    }
)
BYZANTIUM = {
    **FRONTIER,
    **_table({0x05: contract("MODEXP", modexp.byzantium_gas, modexp.modexp)}),
    **_bn254(500, 40_000, (100_000, 80_000)),
}
ISTANBUL = {
    **BYZANTIUM,
    **_bn254(150, 6000, (45_000, 34_000)),  # EIP-1108
    **_table({0x09: contract("BLAKE2F", hashes.blake2_gas, hashes.blake2_compress)}),
}
BERLIN = {
    **ISTANBUL,
    **_table({0x05: contract("MODEXP", modexp.berlin_gas, modexp.modexp)}),
}
CANCUN = {
    **BERLIN,
    **_table(
        {0x0A: contract("KZG_POINT_EVALUATION", fixed(kzg.GAS), kzg.point_evaluation)}
    ),
}
_bls = bls12_381
PRAGUE = {
    **CANCUN,
    **_table(
        {
            0x0B: contract("BLS12_G1ADD", fixed(_bls.G1_ADD_GAS), _bls.g1_add),
            0x0C: contract("BLS12_G1MSM", _bls.g1_msm_gas, _bls.g1_msm),
            0x0D: contract("BLS12_G2ADD", fixed(_bls.G2_ADD_GAS), _bls.g2_add),
            0x0E: contract("BLS12_G2MSM", _bls.g2_msm_gas, _bls.g2_msm),
            0x0F: contract("BLS12_PAIRING_CHECK", _bls.pairing_gas, _bls.pairing),
            0x10: contract(
                "BLS12_MAP_FP_TO_G1", fixed(_bls.MAP_TO_G1_GAS), _bls.map_to_g1
            ),
            0x11: contract(
                "BLS12_MAP_FP2_TO_G2", fixed(_bls.MAP_TO_G2_GAS), _bls.map_to_g2
            ),
        }
    ),
}
OSAKA = {
    **PRAGUE,
    **_table(
        {
            0x05: contract("MODEXP", modexp.osaka_gas, modexp.limited_modexp),
            0x100: contract(
                "P256VERIFY", fixed(signatures.P256_GAS), signatures.p256_verify
            ),
        }
    ),
}
