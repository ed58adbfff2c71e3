"""Compares precompiled contracts with py-evm's, which are pure Python, and geth's."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from eth._utils.blake2.coders import extract_blake2b_parameters
from eth._utils.blake2.compression import blake2b_compress
from eth.exceptions import VMError
from eth.vm.forks.prague.computation import PRAGUE_PRECOMPILES
from eth_utils.exceptions import ValidationError

from evm.frame_errors import FrameError
from evm.precompiles import tables
from evm.precompiles.contract import Precompile
from tests.golden.geth import Geth
from tests.support.precompile_inputs import INPUTS

ADDRESSES = {
    name: number.to_bytes(20, "big")
    for name, number in zip(
        INPUTS, (0x01, *range(0x05, 0x0A), *range(0x0B, 0x12)), strict=True
    )
}


class Frame:
    """The members of a call frame that py-evm's contracts use."""

    def __init__(self, data: bytes) -> None:
        self.msg = SimpleNamespace(data=data, data_as_bytes=data)
        self.output = b""
        self.gas_used = 0

    def consume_gas(self, amount: int, reason: str) -> None:
        self.gas_used += amount


def _blake2f(frame: Any) -> None:
    """Run BLAKE2b with py-evm's pure Python function instead of the native one."""
    try:
        parameters = extract_blake2b_parameters(frame.msg.data)
    except ValidationError as error:
        raise VMError(str(error)) from error
    frame.consume_gas(parameters[0], "rounds")
    frame.output = blake2b_compress(*parameters)


THEIRS = {**PRAGUE_PRECOMPILES, ADDRESSES["blake2f"]: _blake2f}


def result(
    contracts: dict[bytes, Any], name: str, data: bytes
) -> tuple[bytes, int] | None:
    """Return a contract's output and gas for an input, None if it rejects the input."""
    frame = Frame(data)
    try:
        run = contracts[ADDRESSES[name]]
        if isinstance(run, Precompile):
            return run.function(data), run.price(data)
        run(frame)
    except (FrameError, VMError):
        return None
    return frame.output, frame.gas_used


def is_known_wrong(name: str, data: bytes) -> bool:
    """Return whether py-evm is wrong: it computes 0 ** 0 as 0 if the base is empty."""
    return name == "modexp" and not any(data[:32])


def difference(name: str, data: bytes) -> str | None:
    """Return what differs from py-evm for an input, None if nothing does."""
    if is_known_wrong(name, data):
        return None
    ours, theirs = result(tables.PRAGUE, name, data), result(THEIRS, name, data)
    if ours == theirs:
        return None
    return f"{name} of 0x{data.hex()}: {ours}, py-evm {theirs}"


def difference_from_geth(geth: Geth, name: str, data: bytes) -> str | None:
    """Return the difference from geth's result for an input, or None.

    geth: on a chain at Prague. Its eth_call reports the output or the failure, no gas.
    """
    ours = result(tables.PRAGUE, name, data)
    call = {"to": f"0x{ADDRESSES[name].hex()}", "data": f"0x{data.hex()}"}
    answer = geth.call("eth_call", [call, "latest"])
    theirs = None if "error" in answer else bytes.fromhex(answer["result"][2:])
    if theirs == (None if ours is None else ours[0]):
        return None
    return f"{name} of 0x{data.hex()}: {ours}, geth {answer}"
