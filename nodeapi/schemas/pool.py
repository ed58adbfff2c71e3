"""The transaction pool."""

from __future__ import annotations

from jsonrpc.params import Schema
from nodeapi.schemas.building import object_with
from nodeapi.schemas.transactions import TRANSACTION
from nodeapi.schemas.values import QUANTITY, STRING

POOL_STATUS = object_with({"pending": QUANTITY, "queued": QUANTITY})
_BY_NONCE: Schema = {"type": "object", "additionalProperties": TRANSACTION}
_BY_SENDER: Schema = {"type": "object", "additionalProperties": _BY_NONCE}
POOL_CONTENT_FROM = object_with({"pending": _BY_NONCE, "queued": _BY_NONCE})
POOL_CONTENT = object_with({"pending": _BY_SENDER, "queued": _BY_SENDER})

_LINES: Schema = {
    "type": "object",
    "additionalProperties": {"type": "object", "additionalProperties": STRING},
}

POOL_LINES = object_with({"pending": _LINES, "queued": _LINES})
