"""The result of eth_feeHistory, from headers and tips.

Source: go-ethereum eth/gasprice/feehistory.go
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from evm.blob_gas import blob_base_fee, next_excess_blob_gas
from evm.header_rules import next_base_fee
from nodeapi.encoding import quantity

if TYPE_CHECKING:
    from evm.headers import Header
    from evm.rules.fork import BlobParameters, Fork

MAX_BLOCKS = 1024
"""Maximum number of blocks of one result."""

MAX_PERCENTILES = 100

NO_BLOCKS = b'{"oldestBlock":"0x0","gasUsedRatio":null}'
"""The result if no block is requested."""


def check_percentiles(percentiles: Sequence[float]) -> str | None:
    """Return geth's error text for requested percentiles, or None if they are valid."""
    fault = "invalid reward percentile"
    if len(percentiles) > MAX_PERCENTILES:
        return f"{fault}: over the query limit {MAX_PERCENTILES}"
    for index, value in enumerate(percentiles):
        if not 0 <= value <= 100:
            return f"{fault}: {value:f}"
        before = percentiles[index - 1] if index else -1.0
        if value <= before:
            return f"{fault}: #{index - 1}:{before:f} >= #{index}:{value:f}"
    return None


def fee_history(
    headers: Sequence[Header],
    forks: Sequence[Fork | None],
    rewards: Sequence[Sequence[int]] | None,
    has_next_base_fee: bool,
) -> bytes:
    """Return the result for consecutive blocks as JSON.

    headers: at least one.
    forks: the forks of the blocks, None for blocks without blob gas.
    rewards: for each block, the tips at the requested percentiles; None to omit them.
    has_next_base_fee: whether the block after the last one has a base fee.
    """
    following = empty_child(headers[-1], forks[-1], has_next_base_fee)
    base_fees = [header.base_fee_per_gas or 0 for header in (*headers, following)]
    blob_fees = [*map(blob_fee, headers, forks), blob_fee(following, forks[-1])]
    gas_ratios = [_ratio(header.gas_used, header.gas_limit) for header in headers]
    blob_ratios = [
        _ratio(header.blob_gas_used or 0, 0 if fork is None else _blobs(fork).max_gas)
        for header, fork in zip(headers, forks, strict=True)
    ]
    shown = b""
    if rewards is not None:
        shown = b'"reward":%b,' % _array([_quantities(row) for row in rewards])
    return (
        b'{"oldestBlock":%b,%b"baseFeePerGas":%b,"gasUsedRatio":%b'
        b',"baseFeePerBlobGas":%b,"blobGasUsedRatio":%b}'
    ) % (
        quantity(headers[0].number),
        shown,
        _quantities(base_fees),
        _array(gas_ratios),
        _quantities(blob_fees),
        _array(blob_ratios),
    )


def blob_fee(header: Header, fork: Fork | None) -> int:
    """Return the price in wei per blob gas in a block, 0 before Cancun.

    fork: of the block.
    """
    if header.excess_blob_gas is None or fork is None:
        return 0
    return blob_base_fee(header.excess_blob_gas, _blobs(fork).base_fee_update_fraction)


def empty_child(header: Header, fork: Fork | None, has_base_fee: bool) -> Header:
    """Return the header of a next block of the same fork, without transactions.

    Only number, gas and fees are the child's.

    fork: as in `fee_history`.
    has_base_fee: whether the child has a base fee.
    """
    excess = header.excess_blob_gas
    if excess is not None and fork is not None:
        excess = next_excess_blob_gas(
            excess, header.blob_gas_used or 0, header.base_fee_per_gas or 0, fork
        )
    return replace(
        header,
        number=header.number + 1,
        gas_used=0,
        base_fee_per_gas=next_base_fee(header) if has_base_fee else None,
        blob_gas_used=None if excess is None else 0,
        excess_blob_gas=excess,
    )


def _blobs(fork: Fork) -> BlobParameters:
    parameters = fork.blob_parameters
    if parameters is None:
        raise ValueError(f"{fork.name} has no blobs")
    return parameters


def _ratio(used: int, limit: int) -> bytes:
    """Return a fraction as a JSON number, 0 if the limit is 0."""
    ratio = used / limit if limit else 0.0
    return b"%d" % ratio if ratio.is_integer() else repr(ratio).encode()


def _quantities(values: Sequence[int]) -> bytes:
    return _array(list(map(quantity, values)))


def _array(items: Sequence[bytes]) -> bytes:
    return b"[" + b",".join(items) + b"]"
