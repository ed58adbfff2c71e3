"""Proved blocks, made from a network in the test database that has executed them."""

from __future__ import annotations

from typing import Any

from django.db import connection
from eth_typing import Hash32

from evm.blocks import decode_body
from evm.headers import decode_header
from evm.proof_nodes import ProofNodes
from evm.signatures import keccak
from networks.models import Network
from networks.services import Checkpoint
from nodeapi.chain.database import importer_connection
from nodeapi.chain.networks import open_network, stored_config
from nodeapi.chain.proved_blocks import ProvedBlocks
from nodeapi.chain.proved_traces import ProvedTraces
from nodeapi.chain.replay import find_origin
from nodeapi.chain.trie_at import rewind
from nodeapi.chain.witness import build_witness
from nodeapi.documents.receipts import parse_receipt, receipt_document
from nodeapi.proofs.past_state import PastState
from nodeapi.upstreams.proved_blocks import ProvedBlock


def proved_blocks_of(slug: str) -> list[ProvedBlock]:
    """Return the canonical blocks of a network but block 0, the newest first."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT b.id, header, body FROM nodeapi_block b JOIN networks_network n"
            " ON n.id = network_id WHERE slug = %s AND is_canonical AND number > 0"
            " ORDER BY number DESC",
            [slug],
        )
        blocks = cursor.fetchall()
        found = []
        for block_id, header, body in blocks:
            cursor.execute(
                "SELECT receipt, document FROM nodeapi_transactionrecord"
                " JOIN nodeapi_transaction USING (block_id, index)"
                " WHERE block_id = %s ORDER BY index",
                [block_id],
            )
            receipts = [
                parse_receipt(receipt_document(bytes(receipt), bytes(document)))
                for receipt, document in cursor.fetchall()
            ]
            block = decode_body(decode_header(bytes(header)), bytes(body))
            found.append(ProvedBlock(block, receipts))
    return found


def start_at_checkpoint(
    slug: str, full: str, genesis: dict[str, Any], number: int, *, oldest: int = 1
) -> Network:
    """Create a network that starts at a checkpoint on the chain of another network.

    It may lack ancestors that a real network would need, because the chains of tests are
    short.

    full: slug of the other network. genesis: of both. oldest: number of the oldest block that is stored.
    """
    blocks = [
        each for each in proved_blocks_of(full) if each.block.header.number <= number
    ]
    with importer_connection() as opened:
        network_id = open_network(
            opened,
            slug,
            genesis=genesis,
            checkpoint=Checkpoint(number, blocks[0].block.header.hash),
        )
        proved = ProvedBlocks(opened, network_id, stored_config(network_id))
        proved.store(blocks[: number - oldest + 1])
    tip = blocks[0].block.header.hash
    Network.objects.filter(pk=network_id).update(
        head_number=number, head_hash=tip, safe_hash=tip, finalized_hash=tip
    )
    return Network.objects.get(pk=network_id)


def trace_later(slug: str, full: str, block_hash: Hash32) -> None:
    """Store the traces of a proved block, with its witness from a complete network."""
    source = Network.objects.get(slug=full)
    network_id = Network.objects.get(slug=slug).pk
    with importer_connection() as opened:
        origin = find_origin(opened, source.pk, stored_config(source.pk), block_hash)
        parent_hash = origin.block.header.parent_hash
        parent = rewind(opened, source.pk, parent_hash)
        witness = build_witness(opened, source.pk, origin, parent)
        traces = ProvedTraces(opened, network_id, stored_config(network_id))
        headers = {each.hash: each for each in witness.headers}
        untraced = traces.open(traces.find(block_hash), headers)
        codes = {Hash32(keccak(code)): code for code in witness.codes}
        state = PastState(untraced.parent.state_root, ProofNodes(witness.nodes), codes)
        traces.store(untraced, traces.execute(untraced, state))
