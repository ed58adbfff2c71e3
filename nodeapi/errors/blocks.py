"""Blocks and states that are unknown or not canonical, with geth's texts.

Source: go-ethereum eth/api_backend.go, internal/ethapi/errors.go
"""

from __future__ import annotations

from jsonrpc.errors import RpcError


class HeaderNotFound(RpcError):
    """Raised when a block number is above the head, or a network has no blocks."""

    remedy = "Use a block at or below the head, which eth_blockNumber returns."
    text = "header not found"


class HeaderForHashNotFound(RpcError):
    """Raised when a state is requested for an unknown block hash."""

    remedy = (
        "Check the hash. A block of another network or of an abandoned branch may be "
        "unknown."
    )
    text = "header for hash not found"


class TaggedHeaderNotFound(RpcError):
    """Raised when a range of blocks begins or ends at an unknown block with a tag."""

    form = "<tag> header not found"
    remedy = "Use block numbers or the tag latest."

    def __init__(self, tag: str) -> None:
        super().__init__(f"{tag} header not found")


class TaggedBlockNotFound(RpcError):
    """Raised when the safe or the finalized block is unknown.

    It does not happen on a network without upstreams, whose head counts as both.
    """

    form = "<tag> block not found"
    remedy = "Use the tag latest, or try again later."

    def __init__(self, tag: str) -> None:
        super().__init__(f"{tag} block not found")


class UnknownBlock(RpcError):
    """Raised when the logs of a block with an unknown hash are requested."""

    remedy = "Check the hash and the network."
    text = "unknown block"


class HistoryPruned(RpcError):
    """Raised for data of an old block that a network from a checkpoint does not have.

    oldest: number of the oldest block with such data.

    Source of code and text: execution-apis, EIP-4444
    """

    code = 4444
    reason = "history_pruned"
    remedy = "Read newer blocks. eth_capabilities names the oldest ones."
    text = "pruned history unavailable"

    def __init__(self, oldest: int) -> None:
        super().__init__(oldestBlock=hex(oldest))


class NotProved(RpcError):
    """Raised when no upstream node proves a value of the state that is not known yet.

    Nodes prove values for some 128 blocks, and the network may lag behind.
    """

    code = 4444
    reason = "no_proof"
    remedy = "Try again when the network has caught up with the chain."
    text = "pruned history unavailable"


class NoAccessList(RpcError):
    """Raised when the access list of a block before Amsterdam is requested.

    number: of the block. Source of the code: execution-apis, eth_getBlockAccessList
    """

    code = 4445
    reason = "no_access_list"
    form = "block access list not available for pre-Amsterdam block <number>"
    remedy = (
        "Call portcullis_getBlockAccessList, which computes a list of the same form."
    )

    def __init__(self, number: int) -> None:
        super().__init__(
            f"block access list not available for pre-Amsterdam block {number}"
        )


class NotCanonical(RpcError):
    """Raised when a canonical block is required and the hash is a side block's."""

    remedy = (
        "Read the canonical block of that height with eth_getBlockByNumber, or leave "
        "requireCanonical out."
    )
    text = "hash is not currently canonical"


class NotCurrentHead(RpcError):
    """Raised when a block is to be built on another block than the head."""

    remedy = "Build on the head, which eth_getBlockByNumber returns for the tag latest."
    text = "parentHash is not current head"


class RawNotFound(RpcError):
    """Raised when a block or header to be returned as RLP has an unknown hash.

    kind: `block` or `header`. geth prints the hash's bytes as decimal numbers.
    """

    form = "<block or header> #<hash> not found"
    remedy = "Check the hash and the network."

    def __init__(self, kind: str, block_hash: bytes) -> None:
        numbers = " ".join(map(str, block_hash))
        super().__init__(f"{kind} #[{numbers}] not found")
