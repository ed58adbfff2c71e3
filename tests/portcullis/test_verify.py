"""Responses about the sample chain are accepted, and any other value is not."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from evm.blocks import Block, decode_block
from evm.hexadecimal import to_hex
from portcullis.verify import (
    UNVERIFIABLE,
    VerificationError,
    verify_answer,
    verify_header,
    verify_proof,
    verify_transactions,
)
from tests.support import copies, sample
from tests.support.live import Api, Live, live_service

TRANSACTIONS_PER_BLOCK = 6
"""Those whose responses are verified one by one. Their receipts are verified together."""


class Node:
    """Responses of the service, each requested once."""

    def __init__(self, live: Live, api: Api) -> None:
        self.live = live
        self._api = api
        self._found: dict[str, Any] = {}
        self.blocks = [decode_block(raw) for raw in sample.raw_blocks()]

    def request(self, method: str, params: list[Any]) -> Any:
        key = json.dumps([method, params])
        if key not in self._found:
            self._found[key] = self._api.result(method, *params)
        return copy.deepcopy(self._found[key])

    def verify(self, method: str, params: list[Any], block: Block) -> Any:
        """Request and verify a response, and return it."""
        answer = self.request(method, params)
        verify_answer(method, params, answer, block.header.hash, self.request)
        return answer


@pytest.fixture(scope="module")
def node(module_db: None) -> Iterator[Node]:
    copies.sample_chain()
    with live_service() as live, live.api("sample") as api:
        yield Node(live, api)


@cache
def callees() -> list[str]:
    """Return accounts of the sample chain, contracts among them."""
    blocks = [decode_block(raw) for raw in sample.raw_blocks()]
    found = {tx.to for block in blocks for tx in block.transactions if tx.to}
    return sorted(map(to_hex, found))[:12]


def other(value: Any) -> Any:
    """Return another value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, str):
        return value[:-1] + ("0" if value[-1] != "0" else "1") if value else "0x1"
    if isinstance(value, list):
        return [*value, value[0] if value else "0x1"]
    return "0x1" if value is None else None


def check_tampering(
    node: Node, method: str, params: list[Any], answer: Any, block: Block
) -> None:
    with pytest.raises(VerificationError):
        verify_answer(method, params, answer, block.header.hash, node.request)


def test_state_after_each_block_is_verified(node: Node) -> None:
    for block in node.blocks[::12]:
        name = to_hex(block.header.hash)
        for address in callees():
            for method, *params in (
                ("eth_getBalance", address, name),
                ("eth_getTransactionCount", address, name),
                ("eth_getCode", address, name),
                ("eth_getStorageAt", address, "0x1", name),
                ("eth_getProof", address, ["0x0", "0x1"], name),
            ):
                node.verify(method, params, block)


def test_contents_of_each_block_are_verified(node: Node) -> None:
    types = set()
    for block in node.blocks[::3]:
        name = to_hex(block.header.hash)
        receipts = node.verify("eth_getBlockReceipts", [name], block)
        # Each verification of one of its transactions reads the whole block.
        step = 1 + len(block.transactions) // TRANSACTIONS_PER_BLOCK
        for index in range(0, len(block.transactions), step):
            transaction = block.transactions[index]
            types.add(transaction.type)
            place = [name, hex(index)]
            node.verify("eth_getTransactionByBlockHashAndIndex", place, block)
            tx_hash = to_hex(transaction.hash)
            node.verify("eth_getTransactionByHash", [tx_hash], block)
            params = [tx_hash]
            assert (
                node.verify("eth_getTransactionReceipt", params, block)
                == (receipts[index])
            )
        beyond = [name, hex(len(block.transactions))]
        assert (
            node.verify("eth_getTransactionByBlockHashAndIndex", beyond, block) is None
        )
    assert types == {0, 1, 2, 3, 4}


def test_other_values_of_the_state_are_rejected(node: Node) -> None:
    block = node.blocks[-1]
    name = to_hex(block.header.hash)
    for address in callees():
        for method, *params in (
            ("eth_getBalance", address, name),
            ("eth_getTransactionCount", address, name),
            ("eth_getCode", address, name),
            ("eth_getStorageAt", address, "0x1", name),
        ):
            answer = node.request(method, params)
            wrong = answer + "00" if answer == "0x" else other(answer)
            check_tampering(node, method, params, wrong, block)


def test_other_members_of_objects_are_rejected(node: Node) -> None:
    for block in node.blocks[::4]:
        for index in range(len(block.transactions)):
            place = [to_hex(block.header.hash), hex(index)]
            tx_hash = [to_hex(block.transactions[index].hash)]
            for method, params in (
                ("eth_getTransactionByBlockHashAndIndex", place),
                ("eth_getTransactionReceipt", tx_hash),
            ):
                answer = node.request(method, params)
                if index:  # one transaction of a block has all members
                    continue
                for member in answer.keys() - UNVERIFIABLE:
                    changed = {**answer, member: other(answer[member])}
                    check_tampering(node, method, params, changed, block)
                check_tampering(node, method, params, {**answer, "more": "0x1"}, block)
                check_tampering(node, method, params, None, block)


def test_other_members_of_proofs_are_rejected(node: Node) -> None:
    block = node.blocks[-1]
    for address in callees()[:4]:
        params = [address, ["0x0", "0x1"], to_hex(block.header.hash)]
        answer = node.request("eth_getProof", params)
        for member in answer:
            changed = {**answer, member: other(answer[member])}
            check_tampering(node, "eth_getProof", params, changed, block)
        more = {**answer, "more": "0x1"}
        check_tampering(node, "eth_getProof", params, more, block)
        for shown in range(2):
            changed = copy.deepcopy(answer)
            changed["storageProof"][shown]["more"] = "0x1"
            check_tampering(node, "eth_getProof", params, changed, block)
            for member in ("key", "value", "proof"):
                changed = copy.deepcopy(answer)
                proof = changed["storageProof"][shown]
                proof[member] = other(proof[member])
                check_tampering(node, "eth_getProof", params, changed, block)
        for number in range(len(answer["accountProof"])):
            changed = copy.deepcopy(answer)
            del changed["accountProof"][number]
            check_tampering(node, "eth_getProof", params, changed, block)


def test_malformed_members_of_proofs_are_rejected(node: Node) -> None:
    block = node.blocks[-1]
    address, slots = callees()[0], ["0x0", "0x1"]
    answer = node.request("eth_getProof", [address, slots, to_hex(block.header.hash)])
    root, account = block.header.state_root, bytes.fromhex(address[2:])
    verify_proof(answer, root, account, [0, 1])
    proofs: list[Any] = [None, [], {}]
    for member, value in answer.items():
        proofs += [{**answer, member: wrong} for wrong in (None, 5, [5], {})]
        proofs.append({name: answer[name] for name in answer if name != member})
        if isinstance(value, str):
            odd = (f" {value}", f"{value[:3]}_{value[3:]}", value[2:], f"{value} ")
            proofs += [{**answer, member: wrong} for wrong in odd]
    for wrong in proofs:
        with pytest.raises(VerificationError):
            verify_proof(wrong, root, account, [0, 1])


def test_a_lying_node_can_not_prove_its_responses(node: Node) -> None:
    block, before = node.blocks[-1], node.blocks[-2]
    params = [callees()[0], to_hex(block.header.hash)]
    answer = node.request("eth_getBalance", params)

    def lie_about(method: str, value: Any) -> Any:
        def request(asked: str, params: list[Any]) -> Any:
            return value if asked == method else node.request(asked, params)

        return request

    header = node.request("debug_getRawHeader", [to_hex(before.header.hash)])
    for request in (
        lie_about("debug_getRawHeader", header),
        lie_about("debug_getRawHeader", "0x"),
        lie_about("eth_getProof", {}),
        lie_about("eth_getProof", None),
    ):
        with pytest.raises(VerificationError):
            verify_answer("eth_getBalance", params, answer, block.header.hash, request)
    full = next(each for each in node.blocks if len(each.transactions) > 1)
    name = to_hex(full.header.hash)
    receipts = node.request("eth_getBlockReceipts", [name])
    raws = node.request("debug_getRawReceipts", [name])
    for value in (raws[:-1], raws[::-1], []):
        with pytest.raises(VerificationError):
            verify_answer(
                "eth_getBlockReceipts",
                [name],
                receipts,
                full.header.hash,
                lie_about("debug_getRawReceipts", value),
            )
    for wrong in (receipts[:-1], [*receipts, receipts[0]], None):
        check_tampering(node, "eth_getBlockReceipts", [name], wrong, full)


def test_data_at_hand_is_verified_without_a_node(node: Node) -> None:
    for block in node.blocks:
        header = verify_header(block.header.encode(), block.header.hash)
        assert header.state_root == block.header.state_root
        raws = [transaction.raw for transaction in block.transactions]
        verify_transactions(raws, header)
        with pytest.raises(VerificationError):
            verify_transactions([*raws, b"\xc0"], header)
        with pytest.raises(VerificationError):
            verify_header(block.header.encode(), bytes(32))


@pytest.mark.parametrize("shown", [None, "0x", 5, {}, ["0x"]])
def test_malformed_proofs_and_answers_are_rejected(node: Node, shown: object) -> None:
    block = next(each for each in node.blocks if each.transactions)
    name = to_hex(block.header.hash)
    params = [callees()[0], name]
    with pytest.raises(VerificationError):
        verify_answer("eth_getBalance", params, "0x1", name, lambda *_: shown)
    with pytest.raises(VerificationError):
        verify_answer("eth_getBalance", params, shown, name, node.request)
    place = [name, "0x0"]
    method = "eth_getTransactionByBlockHashAndIndex"
    with pytest.raises(VerificationError):
        verify_answer(method, place, shown, name, node.request)


def test_answers_of_other_methods_are_not_verified(node: Node) -> None:
    with pytest.raises(VerificationError, match="can't be verified"):
        verify_answer("eth_chainId", [], "0x1", bytes(32), node.request)


def test_command_verifies_what_a_node_answers(
    node: Node, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = to_hex(node.blocks[-1].header.hash)
    url = f"{node.live.base_url}/sample/v3/{node.live.new_key()}"
    params = json.dumps([callees()[0], name])
    arguments = ["verify_answer", url, "eth_getBalance", params, "--block-hash", name]
    call_command(*arguments)
    balance = node.request("eth_getBalance", [callees()[0], name])
    assert f'eth_getBalance: block {name} proves "{balance}"' in capsys.readouterr().out
    file = tmp_path / "answer.json"
    file.write_text(json.dumps(balance))
    call_command(*arguments, "--answer", str(file))
    file.write_text('"0x1234567"')
    with pytest.raises(CommandError, match="not shown by the proof: balance"):
        call_command(*arguments, "--answer", str(file))
    for wrong in (
        ["verify_answer", "ftp://node", *arguments[2:]],
        ["verify_answer", url, "eth_getBalance", "{}", *arguments[4:]],
        [*arguments[:-1], "0x12"],
        ["verify_answer", url, "eth_getBalance", '["0x1"]', *arguments[4:]],
    ):
        with pytest.raises(CommandError):
            call_command(*wrong)
