"""The table of well-known functions and events."""

from __future__ import annotations

import pytest

from abi.definitions import InvalidDefinition, parse_definition
from abi.selectors import event_of, function_of, well_known
from abi.table import TABLE, read_table, write_table

PUBLISHED = {
    "a9059cbb": "transfer(address,uint256)",
    "095ea7b3": "approve(address,uint256)",
    "23b872dd": "transferFrom(address,address,uint256)",
    "d505accf": "permit(address,address,uint256,uint256,uint8,bytes32,bytes32)",
    "42842e0e": "safeTransferFrom(address,address,uint256)",
    "b88d4fde": "safeTransferFrom(address,address,uint256,bytes)",
    "a22cb465": "setApprovalForAll(address,bool)",
    "f242432a": "safeTransferFrom(address,address,uint256,uint256,bytes)",
    "2eb2c2d6": "safeBatchTransferFrom(address,address,uint256[],uint256[],bytes)",
    "01ffc9a7": "supportsInterface(bytes4)",
    "1626ba7e": "isValidSignature(bytes32,bytes)",
    "150b7a02": "onERC721Received(address,address,uint256,bytes)",
    "f23a6e61": "onERC1155Received(address,address,uint256,uint256,bytes)",
    "bc197c81": "onERC1155BatchReceived(address,address,uint256[],uint256[],bytes)",
    "6e553f65": "deposit(uint256,address)",
    "ba087652": "redeem(uint256,address,address)",
    "b460af94": "withdraw(uint256,address,address)",
    "94bf804d": "mint(uint256,address)",
    "d0e30db0": "deposit()",
    "2e1a7d4d": "withdraw(uint256)",
    "87517c45": "approve(address,address,uint160,uint48)",
    "2b67b570": "permit(address,((address,uint160,uint48,uint48),address,uint256),bytes)",
    "2a2d80d1": "permit(address,((address,uint160,uint48,uint48)[],address,uint256),bytes)",
    "36c78516": "transferFrom(address,address,uint160,address)",
    "0d58b1db": "transferFrom((address,address,uint160,address)[])",
    "30f28b7a": "permitTransferFrom(((address,uint256),uint256,uint256),"
    "(address,uint256),address,bytes)",
    "edd9444b": "permitTransferFrom(((address,uint256)[],uint256,uint256),"
    "(address,uint256)[],address,bytes)",
    "137c29fe": "permitWitnessTransferFrom(((address,uint256),uint256,uint256),"
    "(address,uint256),address,bytes32,string,bytes)",
    "cc53287f": "lockdown((address,address)[])",
    "3ff9dcb1": "invalidateUnorderedNonces(uint256,uint256)",
    "82ad56cb": "aggregate3((address,bool,bytes)[])",
    "252dba42": "aggregate((address,bytes)[])",
    "174dea71": "aggregate3Value((address,bool,uint256,bytes)[])",
    "bce38bd7": "tryAggregate(bool,(address,bytes)[])",
    "c9c65396": "createPair(address,address)",
    "022c0d9f": "swap(uint256,uint256,address,bytes)",
    "0902f1ac": "getReserves()",
    "38ed1739": "swapExactTokensForTokens(uint256,uint256,address[],address,uint256)",
    "7ff36ab5": "swapExactETHForTokens(uint256,address[],address,uint256)",
    "18cbafe5": "swapExactTokensForETH(uint256,uint256,address[],address,uint256)",
    "e8e33700": "addLiquidity(address,address,uint256,uint256,uint256,uint256,"
    "address,uint256)",
    "f305d719": "addLiquidityETH(address,uint256,uint256,uint256,address,uint256)",
    "a1671295": "createPool(address,address,uint24)",
    "128acb08": "swap(address,bool,int256,uint160,bytes)",
    "3850c7bd": "slot0()",
    "fa461e33": "uniswapV3SwapCallback(int256,int256,bytes)",
    "414bf389": "exactInputSingle((address,address,uint24,address,uint256,uint256,"
    "uint256,uint160))",
    "04e45aaf": "exactInputSingle((address,address,uint24,address,uint256,uint256,"
    "uint160))",
    "c04b8d59": "exactInput((bytes,address,uint256,uint256,uint256))",
    "ac9650d8": "multicall(bytes[])",
    "5ae401dc": "multicall(uint256,bytes[])",
    "88316456": "mint((address,address,uint24,int24,int24,uint256,uint256,uint256,"
    "uint256,address,uint256))",
    "3593564c": "execute(bytes,bytes[],uint256)",
    "f2fde38b": "transferOwnership(address)",
    "4f1ef286": "upgradeToAndCall(address,bytes)",
}
"""Signatures and selectors that block explorers publish."""

PUBLISHED_EVENTS = {
    "ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef": "Transfer",
    "8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925": "Approval",
    "17307eab39ab6107e8899845ad3d59bd9653f200f220920489ca2b5937696c31": "ApprovalForAll",
    "c3d58168c5ae7397731d063d5bbf3d657854427343f4c083240f7aacaa2d0f62": "TransferSingle",
    "4a39dc06d4c0dbc64b70af90fd698a233a518aa5d07e595d983b8c0526c8f7fb": "TransferBatch",
    "e1fffcc4923d04b559f4d29a8bfc6cda04eb5b0d3c460751c2402c5c5cc9109c": "Deposit",
    "7fcf532c15f0a6db0bd6d0e038bea71d30d808c7d98cb3bf7268a95bf5081b65": "Withdrawal",
    "dcbc1c05240f31ff3ad067ef1ee35ce4997762752e3a095284754544f4c709d7": "Deposit",
    "0d3648bd0f6ba80134a33ba9275ac585d9d315f0ad8355cddefde31afa28d0e9": "PairCreated",
    "d78ad95fa46c994b6551d0da85fc275fe613ce37657fb8d5e3d130840159d822": "Swap",
    "1c411e9a96e071241c2f21f7726b17ae89e3cab4c78be50e062b03a9fffbbad1": "Sync",
    "783cca1c0412dd0d695e784568c96da2e9c22ff989357a2e8b1d9b2b4e6b7118": "PoolCreated",
    "c42079f94a6350d7e6235f29174924f928cc2ac818eb64fed8004e115fbcca67": "Swap",
    "8be0079c531659141344cd1fd0a4f28419497f9722a3daafe3b4186f6b6457e0": "OwnershipTransferred",
}


@pytest.mark.parametrize(("selector", "signature"), PUBLISHED.items())
def test_published_selectors_are_known(selector: str, signature: str) -> None:
    found = function_of(bytes.fromhex(selector))
    assert {one.signature for one in found} == {signature}


@pytest.mark.parametrize(("topic", "name"), PUBLISHED_EVENTS.items())
def test_published_events_are_known(topic: str, name: str) -> None:
    assert {one.name for one in event_of(bytes.fromhex(topic))} == {name}


def test_table_is_what_its_source_says() -> None:
    assert TABLE.read_bytes() == write_table()


def test_lines_keep_their_meaning() -> None:
    for key, definition in read_table():
        assert key == definition.key
        again = parse_definition(definition.line, definition.interfaces)
        assert again == definition


def test_a_signature_of_several_interfaces_names_all_of_them() -> None:
    names = {name for one in function_of(bytes.fromhex("095ea7b3")) for name in one.interfaces}  # fmt: skip
    assert names == {"ERC-20", "ERC-721"}


def test_standard_errors_are_known() -> None:
    (found,) = well_known().errors(bytes.fromhex("08c379a0"))
    assert found.signature == "Error(string)"


@pytest.mark.parametrize(
    "line",
    [
        *("", "transfer(address)", "function", "function f", "function f(", "function ()"),
        *("function f(uint7)", "function f(uint264)", "function f(bytes33)"),
        *("function f(uint[0])", "function f(())", "function f(address a b)"),
        *("function f(address) returns", "function f() anonymous", "event E() returns (bool)"),
        *("function f(uint256[][][][][][][][][])", "function f(wrong)", "function f(bool) ‮"),
        "function f(" + "(" * 40 + "bool" + ")" * 40 + ")",
    ],
)  # fmt: skip
def test_malformed_definitions_are_rejected(line: str) -> None:
    with pytest.raises(InvalidDefinition):
        parse_definition(line)
