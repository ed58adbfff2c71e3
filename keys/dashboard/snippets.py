"""Example calls to a network (eth_blockNumber) for users to copy."""

from __future__ import annotations

from typing import NamedTuple

VARIABLE = "PORTCULLIS_KEY"
"""The environment variable with the key, for examples that do not contain the key."""


PLACEHOLDER = "YOUR_KEY"
"""Stands for the key in examples on public pages."""


class Snippet(NamedTuple):
    """An example call.

    name: identifier in URLs. title: for display. needs: the command that installs its
        dependencies, or "".
    """

    name: str
    title: str
    needs: str
    text: str


def export_line(key: str) -> str:
    """Return a shell command that sets VARIABLE to the key."""
    return f"export {VARIABLE}={key}"


def snippets(base: str, key: str = "") -> list[Snippet]:
    """Return the same call for several languages and tools.

    base: the network's base URL. key: the key, or "" to read it from VARIABLE.
    """
    shell = f'"{base}/{key or "$" + VARIABLE}"'
    script = f'"{base}/{key}"' if key else f"`{base}/${{process.env.{VARIABLE}}}`"
    return [
        _curl(shell),
        _web3py(base, key),
        _viem(script),
        _ethers(script),
        Snippet("cast", "cast", "", f"cast block-number --rpc-url {shell}"),
    ]


def _curl(address: str) -> Snippet:
    body = '{"jsonrpc": "2.0", "id": 1, "method": "eth_blockNumber", "params": []}'
    return Snippet(
        "curl",
        "curl",
        "",
        f"curl -s {address} \\\n  -H 'Content-Type: application/json' -d '{body}'",
    )


def _web3py(base: str, key: str) -> Snippet:
    imports, address = "", f'"{base}/{key}"'
    if not key:
        imports = "from os import environ\n\n"
        address = f"f\"{base}/{{environ['{VARIABLE}']}}\""
    return Snippet(
        "web3py",
        "web3.py",
        "pip install web3",
        f"{imports}from web3 import Web3\n\n"
        f"w3 = Web3(Web3.HTTPProvider({address}))\n"
        "print(w3.eth.block_number)",
    )


def _viem(address: str) -> Snippet:
    return Snippet(
        "viem",
        "viem",
        "npm install viem",
        'import { createPublicClient, http } from "viem";\n\n'
        f"const client = createPublicClient({{ transport: http({address}) }});\n"
        "console.log(await client.getBlockNumber());",
    )


def _ethers(address: str) -> Snippet:
    return Snippet(
        "ethers",
        "ethers",
        "npm install ethers",
        'import { JsonRpcProvider } from "ethers";\n\n'
        f"const provider = new JsonRpcProvider({address});\n"
        "console.log(await provider.getBlockNumber());",
    )
