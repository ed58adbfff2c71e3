"""Blocks verified as the importer verifies them, on a state in memory."""

from io import BytesIO

from evm import rlp
from evm.blocks import decode_block, encode_block
from evm.chain_config import ChainConfig
from evm.genesis import genesis_block
from evm.header_rules import Generation
from nodeapi.chain.genesis import genesis_state
from nodeapi.chain.memory_state import MemoryState
from nodeapi.chain.verification import Parent, verify_block


def verify_chain(genesis, chain_rlp):
    """Return the `Verified` of each block, and the state after the last one."""
    config = ChainConfig.from_genesis(genesis)
    state = MemoryState()
    head = genesis_block(genesis, config, state.adopt(*genesis_state(genesis))).header
    total_difficulty = head.difficulty
    generations = [Generation(head, ())]
    verified = []
    for raw in rlp.read_items(BytesIO(chain_rlp)):
        block = decode_block(raw)
        assert encode_block(block) == raw
        hashes = [generation.header.hash for generation in generations]
        parent = Parent(
            head, total_difficulty, hashes, generations, state, state.open_trie()
        )
        result = verify_block(block, parent, config)
        assert state.apply(result.changes) == block.header.state_root
        head, total_difficulty = block.header, result.total_difficulty
        uncles = tuple(uncle.hash for uncle in block.uncles)
        generations = [Generation(head, uncles), *generations][:256]
        verified.append(result)
    return verified, state


def verify_blocks(genesis, blocks):
    return verify_chain(genesis, b"".join(map(encode_block, blocks)))
