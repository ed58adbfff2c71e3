"""A chain with call frames of every kind, which anvil has executed as well.

anvil can't be followed with ether in it (see `nodes.Anvil`), and without ether there are no
transfers. So the blocks are built here, and anvil gets their transactions, timestamps and
base fees. Its blocks have other hashes, and everything else about their transactions is
equal.
"""

from __future__ import annotations

from eth_typing import Address

from evm.blocks import Block
from evm.signatures import keccak
from samples.builder import MINER, ChainBuilder
from samples.contracts import contract
from samples.schedules import GENESIS_TIME, fork_genesis
from samples.signers import Signer, create_address
from tests.live.nodes import Anvil
from tests.live.programs import ANVIL
from tests.live.traffic import function, words

ALICE, BOB = Signer("alice"), Signer("bob")
BENEFICIARY = Address(b"\xbe" * 20)
GENESIS = fork_genesis("cancun", ALICE, BOB, chain_id=Anvil.CHAIN_ID)
FAULTS = (
    *("reason", "panic", "custom", "bare", "invalid", "badJump", "underflow"),
    *("overflow", "outOfGas", "beyond", "staticWrite", "nested", "writeAndRevert"),
)


class AnvilWithEther(Anvil):
    """anvil with the accounts and the gas limit of GENESIS."""

    def command(self) -> list[str]:
        """Return the command line."""
        return [
            *(str(ANVIL), "--hardfork", "cancun", "--port", str(self.port)),
            *("--accounts", "0", "--disable-default-create2-deployer"),
            *("--timestamp", str(GENESIS_TIME), "--no-mining", "--order", "fifo"),
            *("--gas-limit", str(int(GENESIS["gasLimit"], 16))),
        ]

    def start(self) -> None:
        """Start anvil and give the accounts their ether."""
        super().start()
        for account, fields in GENESIS["alloc"].items():
            self.call("anvil_setBalance", account, fields.get("balance", "0x0"))
            self.call("anvil_setCode", account, fields.get("code", "0x"))
        self.call("anvil_setCoinbase", f"0x{MINER.hex()}")

    def execute(self, block: Block) -> None:
        """Make a block of the same transactions."""
        header = block.header
        self.call("anvil_setNextBlockBaseFeePerGas", hex(header.base_fee_per_gas or 0))
        self.call("evm_setNextBlockTimestamp", hex(header.timestamp))
        for each in block.transactions:
            self.call("eth_sendRawTransaction", f"0x{each.raw.hex()}")
        self.mine()


def build_chain() -> ChainBuilder:
    """Return a chain with calls, creations, self-destructions and failures.

    No contract calls a precompiled one: anvil lists such calls, and geth's flatCallTracer
    does not.
    """
    chain = ChainBuilder(GENESIS)
    names = ("token", "factory", "faults", "relay", "wallet", "slots")
    arguments = {"token": words(10**9)}
    at = {
        name: chain.deploy(ALICE, contract(name).init_code(arguments.get(name, b"")))
        for name in names
    }
    chain.block()
    for data in (
        function("create()"),
        function("create2(uint256)", 1),
        function("createTwice(uint256)", 2),
        function("createFailing()"),
    ):
        chain.send(ALICE, at["factory"], data, value=3, gas=900_000)
    beneficiary = int.from_bytes(BENEFICIARY)
    data = function("createAndDestroy(uint256,address)", 3, beneficiary)
    chain.send(ALICE, at["factory"], data, value=5, gas=900_000)
    child = int.from_bytes(create_address(at["factory"], 1))
    chain.block()
    data = function("destroy(address,address)", child, beneficiary)
    chain.send(ALICE, at["factory"], data, gas=900_000)
    for depth in (3, 6):
        data = function("descend(uint256)", depth)
        chain.send(BOB, at["relay"], data, value=7, gas=900_000)
    token, target = int.from_bytes(at["token"]), int.from_bytes(at["faults"])
    chain.send(BOB, at["relay"], function("inspect(address)", token))
    data = function("transfer(address,uint256)", beneficiary, 9)
    chain.send(ALICE, at["token"], data)
    chain.send(BOB, BENEFICIARY, value=11, gas=21_000)
    chain.send(BOB, at["wallet"], words(beneficiary, 2, target, 10**30), value=9)
    chain.block()
    for name in FAULTS:
        selector = keccak(f"{name}()".encode())[:4]
        chain.send(BOB, at["faults"], selector, gas=150_000)
        data = function("attempt(address,bytes4)", target, _left(selector))
        chain.send(ALICE, at["relay"], data, value=1, gas=150_000)
    chain.block()
    chain.deploy(BOB, bytes.fromhex("60016000fd"), gas=100_000)
    chain.deploy(BOB, bytes.fromhex("5b600056"), gas=100_000)
    chain.deploy(BOB, bytes.fromhex("60ef60005360016000f3"), gas=100_000)
    chain.deploy(BOB, b"", value=1, gas=100_000)
    chain.block()
    return chain


def _left(selector: bytes) -> int:
    return int.from_bytes(selector.ljust(32, b"\0"))
