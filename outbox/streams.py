"""The names of streams, and of the channel layer's groups that carry their messages."""

from __future__ import annotations

ACCESS = "access"
"""Changes of keys with their entitlements, of plans and of networks. Subjects: `key:<id>`,
`plan:<id>` and `network:<id>`."""

ACCOUNT = "account"
"""The subject of entries about activated or deactivated wallet users. A database trigger
appends such entries as well."""

MESSAGE_TYPE = "outbox.changed"
"""The `type` of a message: `stream` has the number `number`."""


def blocks(network_id: int) -> str:
    """Return the stream of a network's blocks: new heads, side blocks and tags.

    Its entries have no subject.
    """
    return f"blocks.{network_id}"


def wallet(user_id: int) -> str:
    """Return the stream of a wallet user.

    Subjects: `dapp:<id>` for a dapp's session, requests and tokens; `user` for the user's
    pages; ACCOUNT for everything.
    """
    return f"wallet.{user_id}"


def group_of(stream: str) -> str:
    """Return the name of a stream's group in the channel layer."""
    return f"outbox.{stream}"
