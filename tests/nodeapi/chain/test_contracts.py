import pytest

from abi.encoding import call_data, mapping_slot, topic, word
from evm.requests import deposit_requests
from samples.assembler import init_code
from samples.builder import ChainBuilder
from samples.contracts import contract
from samples.schedules import from_genesis, make_genesis
from samples.signers import Signer, create2_address
from tests.support.tokens import error_reason

ANN, BEN = Signer("ann"), Signer("ben")
TRANSFER = "transfer(address,uint256)"


class Bench:
    """A chain for the execution of single transactions."""

    def __init__(self, fork="shanghai"):
        rich = {f"0x{s.address.hex()}": {"balance": hex(10**21)} for s in (ANN, BEN)}
        self.chain = ChainBuilder(
            make_genesis(chain_id=5, first_blocks=from_genesis(fork), alloc=rich)
        )

    def deploy(self, name, arguments=b"", **options):
        code = contract(name).init_code(arguments)
        address = self.chain.deploy(ANN, code, **options)
        self.mine()
        account = self.chain.state.account(address)
        assert self.chain.state.code(account.code_hash) == contract(name).runtime
        return address

    def call(self, address, data, sender=ANN, **options):
        self.chain.send(sender, address, data, **options)
        return self.mine()

    def mine(self):
        self.chain.block()
        return self.chain.outcomes[-1].receipts[-1]

    def slot(self, address, position):
        return self.chain.state.storage(address, position)

    def output(self, address, data):
        """Return a contract's output, which a caller contract stores: success and 4 words."""
        caller = self.chain.deploy(
            ANN,
            init_code(
                b"",
                "PUSH #arguments PUSH @arguments PUSH 0x200 CODECOPY "
                "PUSH 0x80 PUSH 0 PUSH #arguments PUSH 0x200 PUSH 0 "
                f"PUSH20 0x{address.hex()} GAS CALL PUSH 0 SSTORE "
                "RETURNDATASIZE PUSH 1 SSTORE "
                "PUSH 0 MLOAD PUSH 2 SSTORE PUSH 0x20 MLOAD PUSH 3 SSTORE "
                "PUSH 0x40 MLOAD PUSH 4 SSTORE PUSH 0x60 MLOAD PUSH 5 SSTORE",
                data,
            ),
        )
        assert self.mine().status == 1
        size = self.slot(caller, 1)
        words = b"".join(word(self.slot(caller, 2 + i)) for i in range(4))
        return self.slot(caller, 0), words[:size]


@pytest.fixture(scope="module")
def token_bench():
    bench = Bench()
    return bench, bench.deploy("token", word(1000))


def test_the_deployer_gets_the_supply(token_bench):
    bench, token = token_bench
    assert bench.output(token, call_data("totalSupply()")) == (1, word(1000))
    assert bench.output(token, call_data("decimals()")) == (1, word(18))


def test_a_transfer_moves_tokens_and_tells(token_bench):
    bench, token = token_bench
    receipt = bench.call(token, call_data(TRANSFER, BEN.address, 40))
    assert receipt.status == 1
    (log,) = receipt.logs
    assert log.address == token
    assert log.topics == (
        topic("Transfer(address,address,uint256)"),
        word(ANN.address),
        word(BEN.address),
    )
    assert log.data == word(40)
    assert bench.slot(token, mapping_slot(BEN.address, 0)) == 40
    balance = bench.output(token, call_data("balanceOf(address)", ANN.address))
    assert balance == (1, word(960))


def test_a_transfer_to_oneself_changes_nothing(token_bench):
    bench, token = token_bench
    before = bench.slot(token, mapping_slot(ANN.address, 0))
    assert bench.call(token, call_data(TRANSFER, ANN.address, 5)).status == 1
    assert bench.slot(token, mapping_slot(ANN.address, 0)) == before


def test_a_transfer_of_too_much_is_refused_with_the_reason(token_bench):
    bench, token = token_bench
    success, output = bench.output(token, call_data(TRANSFER, BEN.address, 1))
    assert success == 0
    assert output == error_reason("insufficient balance")


def test_the_token_refuses_ether_unknown_functions_and_short_calls(token_bench):
    bench, token = token_bench
    transfer = call_data(TRANSFER, BEN.address, 1)
    assert bench.call(token, transfer, value=1).status == 0
    assert bench.call(token, call_data("burn()")).status == 0
    assert bench.call(token, b"\x01").status == 0
    assert bench.call(token, transfer[:-1]).status == 0


@pytest.mark.parametrize("fork", ["frontier", "byzantium", "berlin", "osaka"])
def test_the_token_works_in_every_fork(fork):
    bench = Bench(fork)
    token = bench.deploy("token", word(7))
    bench.call(token, call_data(TRANSFER, BEN.address, 3))
    assert bench.slot(token, mapping_slot(BEN.address, 0)) == 3


def test_the_factory_makes_children_where_create2_says():
    bench = Bench()
    factory = bench.deploy("factory")
    bench.call(factory, call_data("create2(uint256)", 6), value=9)
    child = create2_address(factory, 6, contract("child").init_code())
    assert bench.slot(factory, 0) == int.from_bytes(child, "big")
    assert bench.slot(child, 0) == int.from_bytes(factory, "big")
    assert bench.chain.state.account(child).balance == 9
    bench.call(factory, call_data("destroy(address,address)", child, BEN.address))
    assert bench.chain.state.account(child) is None
    assert bench.slot(child, 0) == 0


def test_a_child_counts_its_calls():
    bench = Bench()
    child = bench.deploy("child")
    for _ in range(3):
        bench.call(child, b"")
    assert bench.slot(child, 2) == 3


def test_failing_creations_give_zero():
    bench = Bench()
    factory = bench.deploy("factory")
    assert bench.call(factory, call_data("createFailing()")).status == 1
    assert bench.slot(factory, 0) == 0
    data = call_data("createTwice(uint256)", 1)
    assert bench.call(factory, data, gas=3_000_000).status == 1
    assert bench.slot(factory, 0) == 0
    assert bench.slot(factory, 1) == 2


def test_the_proxy_runs_the_logic_on_its_own_storage():
    bench = Bench()
    vault = bench.deploy("vault")
    proxy = bench.deploy("proxy", word(vault))
    bench.call(proxy, call_data("put(uint256,uint256)", 3, 33))
    bench.call(proxy, call_data("set(uint256)", 8))
    assert bench.slot(proxy, mapping_slot(3, 2)) == 33
    assert bench.slot(vault, mapping_slot(3, 2)) == 0
    assert bench.slot(proxy, 1) == int.from_bytes(ANN.address, "big")
    assert bench.output(proxy, call_data("at(uint256)", 3)) == (1, word(33))
    refusal = (0, error_reason("the vault stays open"))
    assert bench.output(proxy, call_data("close()")) == refusal


def test_the_relay_visits_every_depth():
    bench = Bench()
    relay = bench.deploy("relay")
    bench.call(relay, call_data("descend(uint256)", 6), gas=1_000_000, value=1)
    assert [bench.slot(relay, depth) for depth in range(8)] == [1] * 7 + [0]


def test_the_relay_looks_and_tries():
    bench = Bench()
    relay, token = bench.deploy("relay"), bench.deploy("token", word(5))
    bench.call(token, call_data(TRANSFER, relay, 2))
    answer = bench.output(relay, call_data("inspect(address)", token))
    assert answer == (1, word(2))
    data = call_data("attempt(address,bytes4)", token, b"burn".ljust(32, b"\0"))
    assert bench.output(relay, data) == (1, word(0))


@pytest.mark.parametrize(
    ("function", "output"),
    [
        ("reason()", error_reason("no reason at all")),
        ("panic()", call_data("Panic(uint256)", 0x11)),
        ("bare()", b""),
        ("invalid()", b""),
    ],
)
def test_a_fault_says_what_it_should(function, output):
    bench = Bench()
    faults = bench.deploy("faults")
    assert bench.output(faults, call_data(function)) == (0, output)


@pytest.mark.parametrize(
    "function", ["invalid", "badJump", "underflow", "overflow", "outOfGas", "beyond"]
)
def test_a_halting_fault_takes_all_gas(function):
    bench = Bench()
    faults = bench.deploy("faults")
    receipt = bench.call(faults, call_data(f"{function}()"), gas=60_000)
    assert (receipt.status, receipt.gas_used) == (0, 60_000)


def test_what_a_reverted_frame_wrote_is_gone():
    bench = Bench()
    faults = bench.deploy("faults")
    receipt = bench.call(faults, call_data("nested()"))
    assert [bench.slot(faults, n) for n in (0, 1, 2, 5)] == [1, 0, 1, 0]
    assert receipt.logs == []
    bench.call(faults, call_data("staticWrite()"))
    assert bench.slot(faults, 5) == 0


def test_slots_are_filled_restored_and_cleared():
    bench = Bench("cancun")
    slots = bench.deploy("slots")
    for function, first, second in (
        ("fill", 10, 5),
        ("restore", 11, 99),
        ("clear", 13, 9),
        ("set", 3, 4),
        ("transient", 7, 8),
    ):
        data = call_data(f"{function}(uint256,uint256)", first, second)
        assert bench.call(slots, data).status == 1
    live = {
        slot: bench.slot(slots, slot) for slot in bench.chain.state.live_slots(slots)
    }
    assert live == {10: 11, 11: 12, 12: 13, 3: 4, 7: 8}


def test_the_looper_burns_gas_by_the_round():
    bench = Bench()
    looper = bench.deploy("looper")
    few, many = (
        bench.call(looper, word(rounds), gas=2_000_000).gas_used
        for rounds in (1000, 2000)
    )
    assert 60_000 < many - few < 80_000


def test_the_wallet_pays_everyone():
    bench = Bench()
    wallet = bench.deploy("wallet")
    stranger = b"\x99" * 20
    data = word(stranger) + word(5) + word(BEN.address) + word(10**30)
    bench.call(wallet, data, value=7)
    assert bench.chain.state.account(stranger).balance == 5
    assert bench.chain.state.account(wallet).balance == 2
    assert bench.slot(wallet, 0) == 1


def test_the_blobs_contract_keeps_the_first_hash():
    bench = Bench("cancun")
    blobs = bench.deploy("blobs")
    bench.call(blobs, b"", blob_versioned_hashes=[b"\x01" + b"\x05" * 31])
    assert bench.slot(blobs, 0) == int.from_bytes(b"\x01" + b"\x05" * 31, "big")
    assert bench.slot(blobs, 1) == 0
    assert bench.slot(blobs, 2) == 1


def test_the_deposit_contract_logs_what_clients_accept():
    bench = Bench("cancun")
    deposits = bench.deploy("deposits")
    deposit = bytes(range(192))
    receipt = bench.call(deposits, deposit)
    assert deposit_requests(receipt.logs, deposits) == deposit


def test_the_environment_is_kept():
    bench = Bench("shanghai")
    environment = bench.deploy("environment")
    receipt = bench.call(environment, b"", value=3)
    header = bench.chain.head
    values = [bench.slot(environment, position) for position in range(1, 11)]
    assert receipt.status == 1
    assert values == [
        5,
        3,
        header.base_fee_per_gas,
        int.from_bytes(header.mix_hash, "big"),
        header.gas_limit,
        int.from_bytes(header.coinbase, "big"),
        header.timestamp,
        int.from_bytes(header.parent_hash, "big"),
        header.base_fee_per_gas + 10**9,
        int.from_bytes(ANN.address, "big"),
    ]
