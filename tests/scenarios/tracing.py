"""Calls, creations, failures and logs of every kind that tracers distinguish."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from eth_typing import Address, Hash32

from abi.encoding import call_data, word
from evm.blocks import Withdrawal
from evm.requests import CONSOLIDATION_REQUEST_ADDRESS, WITHDRAWAL_REQUEST_ADDRESS
from samples import precompile_inputs as inputs
from samples.assembler import assemble, init_code
from samples.builder import ChainBuilder
from samples.contracts import contract
from samples.schedules import from_genesis
from samples.signers import Signer
from tests.scenarios.base import (
    ANN,
    BEN,
    CYD,
    FACTORY,
    FAULTS,
    FRESH,
    SLOTS,
    WALLET,
    Chain,
    begin,
    child_of,
)

_TRANSACTIONS_PER_BLOCK = 5

_CALLER, _LOGGER, _HASHER, _LOOKER, _DEEP, _MAKER, _KEEPER, _RELAY, _PRECOMPILES = (
    Address(bytes([0xC0 + i]) * 20) for i in range(9)
)
_PLAIN = Address(b"\xe0" * 20)
"""An account with ether and without code."""

_FAULT_GAS = 42_000
"""A low gas limit, because traces of `outOfGas()` grow with it."""
_FAULTS = (
    *("reason()", "panic()", "custom()", "bare()", "invalid()", "badJump()"),
    *("underflow()", "outOfGas()", "beyond()", "staticWrite()"),
    *("nested()", "writeAndRevert()", "write()"),
)


def _precompile(number: int) -> Address:
    return Address(number.to_bytes(20, "big"))


def _call(
    kind: str, to: bytes, *, gas: int = 60_000, value: int = 0, size: int = 4
) -> str:
    """Return code for a call with `size` bytes of memory as input.

    Its result is dropped.
    """
    paid = f"PUSH {value} " if kind in ("CALL", "CALLCODE") else ""
    return (
        f"PUSH 32 PUSH 64 PUSH {size} PUSH 28 {paid}"
        f"PUSH20 0x{to.hex()} PUSH {gas} {kind} POP "
    )


def _calls() -> str:
    """Return code with all kinds of calls. Their input is a selector or shorter."""
    code = ""
    for signature, target in (
        ("fill(uint256,uint256)", SLOTS),
        ("write()", FAULTS),
        ("reason()", FAULTS),
    ):
        code += f'PUSH4 selector("{signature}") PUSH 0 MSTORE '
        for kind in ("CALL", "CALLCODE", "DELEGATECALL", "STATICCALL"):
            code += _call(kind, target, size=68 if target == SLOTS else 4)
    for target in (_PLAIN, FRESH[0], _precompile(2), _precompile(4), _precompile(6)):
        for kind in ("CALL", "CALLCODE", "DELEGATECALL", "STATICCALL"):
            code += _call(kind, target)
    code += _call("CALL", FRESH[1], value=3) + _call("CALL", _PLAIN, value=10**30)
    code += _call("CALLCODE", SLOTS, value=2) + _call("CALL", _precompile(1), value=1)
    code += _call("CALL", SLOTS, gas=100) + _call("CALL", FAULTS, gas=10**9, size=3)
    return code + "PUSH 32 PUSH 64 RETURN"


_LOGS = (
    "PUSH 0x1234 PUSH 0 MSTORE PUSH 0 DUP1 LOG0 PUSH 1 PUSH 32 PUSH 0 LOG1"
    " PUSH 2 PUSH 1 PUSH 4 PUSH 30 LOG2 PUSH 3 DUP1 DUP1 PUSH 64 PUSH 31 LOG3"
    " PUSH 4 DUP1 DUP1 DUP1 PUSH 1 PUSH 0 LOG4"
)
_HASHES = (
    "PUSH 0xdeadbeef PUSH 0 MSTORE PUSH 0 DUP1 SHA3 POP PUSH 4 PUSH 28 SHA3 POP"
    " PUSH 64 PUSH 16 SHA3 PUSH 32 MSTORE PUSH 64 PUSH 0 SHA3 PUSH 1 SSTORE"
)
_TRANSIENT = "PUSH 7 PUSH 1 TSTORE PUSH 1 TLOAD PUSH 2 TLOAD ADD PUSH 3 SSTORE"


def _looks() -> str:
    """Return code that reads accounts and the environment."""
    code = ""
    for address in (_PLAIN, FRESH[2], SLOTS, _LOOKER, _precompile(3), ANN.address):
        named = f"PUSH20 0x{address.hex()}"
        code += (
            f"{named} BALANCE POP {named} EXTCODESIZE ISZERO POP {named} EXTCODEHASH"
        )
        code += f" POP PUSH 40 PUSH 0 DUP1 {named} EXTCODECOPY {named} EXTCODESIZE POP "
    for name in (
        *("ADDRESS", "ORIGIN", "CALLER", "CALLVALUE", "GASPRICE", "COINBASE", "NUMBER"),
        *("TIMESTAMP", "GASLIMIT", "CHAINID", "SELFBALANCE", "BASEFEE", "BLOBBASEFEE"),
        *("RETURNDATASIZE", "CODESIZE", "MSIZE", "PC", "GAS", "PUSH0"),
    ):
        code += f"{name} POP "
    return (
        code + "PUSH 1 NUMBER SUB BLOCKHASH POP PUSH 0 BLOBHASH POP GAS PUSH 1 SSTORE"
    )


_CREATIONS = (
    "CALLDATASIZE PUSH 0 DUP1 CALLDATACOPY CALLDATASIZE PUSH 0 PUSH 1 CREATE POP"
    " PUSH 5 CALLDATASIZE PUSH 0 DUP1 CREATE2 POP PUSH 5 CALLDATASIZE PUSH 0 DUP1 CREATE2"
    " POP PUSH 4 PUSH 0 PUSH 10000000000000000000000 CREATE POP"
)
"""Code that creates three contracts with the call data as init code, and one with a
value that exceeds its balance."""
_INIT_CODES = (
    *("PUSH 0 DUP1 RETURN", "PUSH 0 DUP1 REVERT", "INVALID", "CALLER SELFDESTRUCT"),
    *("PUSH 0xef PUSH 0 MSTORE8 PUSH 1 PUSH 0 RETURN", "PUSH 24577 PUSH 0 RETURN"),
    *("PUSH 1 PUSH 1 SSTORE PUSH 0 DUP1 LOG0 PUSH 8 PUSH 0 RETURN", "POP"),
)

_RECURSION = (
    "PUSH 0 CALLDATALOAD DUP1 PUSH @further JUMPI PUSH 0 DUP1 REVERT"
    "\nfurther: PUSH 1 SWAP1 SUB PUSH 0 MSTORE"
    " PUSH 0 DUP1 PUSH 32 PUSH 0 DUP1 ADDRESS GAS CALL PUSH 0 MSTORE"
    " PUSH 32 PUSH 0 RETURN"
)


def _alloc() -> dict[str, Any]:
    codes = {
        _CALLER: assemble(_calls()),
        _LOGGER: assemble(_LOGS),
        _HASHER: assemble(_HASHES),
        _LOOKER: assemble(_looks()),
        _DEEP: assemble(_RECURSION),
        _MAKER: assemble(_CREATIONS),
        _KEEPER: assemble(_TRANSIENT),
        _RELAY: contract("relay").runtime,
        _PRECOMPILES: contract("precompiles").runtime,
    }
    alloc: dict[str, Any] = {f"0x{_PLAIN.hex()}": {"balance": "0x5"}}
    for address, code in codes.items():
        entry = {"balance": "0x3e8", "nonce": "0x1", "code": f"0x{code.hex()}"}
        alloc[f"0x{address.hex()}"] = {**entry, "storage": {"0x01": "0x09"}}
    return alloc


def _precompile_calls() -> Iterator[bytes]:
    """Yield calls of each precompiled contract, with valid and with random data."""
    valid = {
        1: inputs.ECRECOVER_INPUT,
        2: b"data",
        3: b"data",
        4: b"data",
        5: inputs.MODEXP_INPUT,
        6: inputs.CURVE_ADD_INPUT,
        7: inputs.CURVE_MULTIPLY_INPUT,
        8: inputs.CURVE_PAIRING_INPUT,
        9: inputs.BLAKE2F_INPUT,
        10: inputs.POINT_EVALUATION_INPUT,
        11: inputs.BLS_G1_ADD_INPUT,
        256: inputs.P256_VERIFY_INPUT,
    }
    for number, data in valid.items():
        yield word(number) + data
    for number in (*range(1, 19), 256):
        yield word(number) + b"\xff" * 160
        yield word(number)


def _batches(many: Iterable[Any]) -> Iterator[list[Any]]:
    """Split the elements into lists, one for each block."""
    waiting = iter(many)
    while batch := list(islice(waiting, _TRANSACTIONS_PER_BLOCK)):
        yield batch


def tracing(fork: str = "bpo2") -> Chain:
    """All cases that tracers distinguish, in blocks of a few transactions."""
    genesis, chain = begin(from_genesis(fork), _alloc())
    for contracts in _batches((_CALLER, _LOGGER, _HASHER, _LOOKER, _KEEPER)):
        for address in contracts:
            chain.send(ANN, address, call_data("run()"), gas=900_000, value=1)
        chain.block()
    _failures(chain)
    _create(chain)
    _destroy(chain)
    _delegate(chain)
    for many in _batches(_precompile_calls()):
        for data in many:
            chain.send(CYD, _PRECOMPILES, data, gas=200_000)
        chain.block()
    chain.send(BEN, _DEEP, word(60), gas=900_000)
    chain.send(BEN, _RELAY, call_data("descend(uint256)", 12), gas=900_000, value=4)
    chain.block()
    _kinds_of_transactions(chain)
    chain.block(withdrawals=[Withdrawal(0, 1, FRESH[6], 7), Withdrawal(1, 1, SLOTS, 0)])
    key = bytes(range(48))
    chain.send(BEN, WITHDRAWAL_REQUEST_ADDRESS, key + bytes(8), value=10**6)
    chain.send(BEN, CONSOLIDATION_REQUEST_ADDRESS, key + key, value=10**6)
    chain.block()
    chain.send(BEN, _LOGGER, call_data("run()"))
    chain.block()
    return genesis, chain.blocks


def _failures(chain: ChainBuilder) -> None:
    """Call each failing function, directly and from a contract that continues."""
    for names in _batches(_FAULTS):
        for name in names:
            chain.send(BEN, FAULTS, call_data(name), gas=_FAULT_GAS)
        chain.block()
    for names in _batches(_FAULTS):
        for name in names:
            chosen = call_data(name)[:4]
            data = call_data("attempt(address,bytes4)", FAULTS, chosen + bytes(28))
            chain.send(BEN, _RELAY, data, gas=_FAULT_GAS, value=1)
        chain.block()


def _create(chain: ChainBuilder) -> None:
    """Create contracts from contracts and by transactions, with success and failure."""
    for codes in _batches(_INIT_CODES):
        for code in codes:
            chain.send(ANN, _MAKER, assemble(code), gas=300_000)
        chain.block()
    for name in ("create()", "createFailing()"):
        chain.send(ANN, FACTORY, call_data(name), value=2)
    for name in ("create2(uint256)", "createTwice(uint256)"):
        chain.send(ANN, FACTORY, call_data(name, 1), gas=900_000)
    chain.block()
    chain.deploy(BEN, init_code(assemble(_LOGS)), value=3)
    chain.deploy(
        BEN, assemble("PUSH 1 PUSH 1 SSTORE PUSH 0 DUP1 LOG0 PUSH 0 DUP1 REVERT")
    )
    chain.deploy(BEN, contract("faults").runtime + call_data("reason()"))
    chain.deploy(
        BEN, assemble("PUSH 0xef PUSH 0 MSTORE8 PUSH 1 PUSH 0 RETURN"), gas=99_000
    )
    chain.block()
    chain.deploy(BEN, contract("slots").init_code(), gas=90_000, value=1)
    chain.deploy(BEN, b"", value=2)
    chain.deploy(BEN, b"\xfe", gas=60_000)
    chain.deploy(BEN, assemble("PUSH 24577 PUSH 0 RETURN"), gas=6_000_000)
    chain.block()


def _destroy(chain: ChainBuilder) -> None:
    """Destroy old contracts, new contracts, and their own beneficiaries."""
    code = contract("child").init_code()
    children = [chain.deploy(ANN, code, value=10 + i) for i in range(4)]
    chain.block()
    for child, beneficiary in zip(
        children, (children[0], FRESH[3], _precompile(1), CYD.address), strict=True
    ):
        chain.send(BEN, child, word(beneficiary))
    chain.block()
    for child in (*children[:2], child_of(1)):
        chain.send(BEN, child, value=1)
    chain.deploy(ANN, assemble("ADDRESS SELFDESTRUCT"), value=8)
    data = call_data("createAndDestroy(uint256,address)", 9, FRESH[4])
    chain.send(ANN, FACTORY, data, value=3)
    chain.block()


def _delegate(chain: ChainBuilder) -> None:
    """Set, use, change and clear delegations, also to a precompiled contract."""
    dot, eve = Signer("dot"), Signer("eve")
    pay = word(FRESH[5]) + word(5) + word(eve.address) + word(0)
    chain.send(BEN, dot.address, pay, authorization_list=[chain.authorize(dot, WALLET)])
    chain.send(BEN, dot.address, pay, value=100)
    own = chain.authorize(CYD, SLOTS, ahead=1)
    fill = call_data("fill(uint256,uint256)", 0, 3)
    chain.send(CYD, CYD.address, fill, authorization_list=[own])
    chain.block()
    void = [
        dot.authorize(1, WALLET, 0),
        dot.authorize(chain.config.chain_id, WALLET, 99),
    ]
    chain.send(BEN, eve.address, authorization_list=void)
    circle = [chain.authorize(eve, dot.address), chain.authorize(dot, eve.address)]
    chain.send(BEN, dot.address, authorization_list=circle)
    chain.send(
        BEN,
        eve.address,
        b"data",
        authorization_list=[chain.authorize(eve, _precompile(2))],
    )
    chain.send(BEN, FRESH[7], authorization_list=[chain.authorize(dot, FAULTS)])
    data = call_data(
        "attempt(address,bytes4)", dot.address, call_data("reason()") + bytes(28)
    )
    chain.send(BEN, _RELAY, data)
    chain.block()
    zero_address = Address(bytes(20))
    cleared = [chain.authorize(signer, zero_address) for signer in (dot, CYD, eve)]
    chain.send(BEN, BEN.address, authorization_list=cleared)
    chain.send(BEN, dot.address, pay)
    chain.block()


def _kinds_of_transactions(chain: ChainBuilder) -> None:
    """Send every type of transaction, also to special receivers."""
    slots: list[tuple[Address, list[int]]] = [(SLOTS, [0, 1]), (_PLAIN, [])]
    fill = call_data("fill(uint256,uint256)", 0, 4)
    blob = Hash32(b"\x01" + bytes(31))
    chain.send(ANN, SLOTS, fill, gas_price=10**11, access_list=slots)
    chain.send(ANN, SLOTS, fill, access_list=slots, max_priority_fee_per_gas=0)
    chain.send(
        ANN, SLOTS, call_data("clear(uint256,uint256)", 0, 9), chain_id=0, type=0
    )
    chain.send(ANN, _LOOKER, blob_versioned_hashes=[blob, blob])
    chain.block(coinbase=ANN.address)
    chain.send(BEN, _precompile(2), b"some data")
    chain.send(BEN, _precompile(8), b"odd", gas=90_000)
    chain.send(BEN, BEN.address, value=1)
    chain.send(BEN, FRESH[8], bytes(range(1, 200)) * 4)
    chain.send(BEN, FRESH[9], value=1, gas=21_000)
    chain.block(coinbase=FRESH[10])
