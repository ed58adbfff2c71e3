"""Describes typed data for people."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from abi.addresses import checksummed
from legible.text import hides_something
from wallets.effects.contracts import Facts, read_facts
from wallets.nodes.page_node import PageNode
from wallets.signing.known.recognition import Known, recognize
from wallets.signing.typed_data import Field, TypedData
from wallets.upstream import ChainNode

FACTS_SECONDS = 4.0
"""Time limit for reading contracts."""


def describe_typed_data(
    data: TypedData, scope: str, signer: str, node: PageNode | None
) -> dict[str, Any]:
    """Return the template's context for typed data.

    scope: of the network. signer: address of the account that signs, in lower case.
    """
    domain, fields = data.domain_fields(), data.fields()
    context = {
        "data": data,
        "domain": domain,
        "fields": fields,
        "hides": any(map(hides_something, _texts((*domain, *fields)))),
    }
    known = recognize(data)
    if known is None:
        return context
    facts = _facts(known, scope, node)
    if facts is not None and not facts.is_confirmed:
        contract = checksummed(bytes.fromhex(known.contract[2:]))
        return context | {"refuted_title": known.title, "refuted_contract": contract}
    tokens = {} if facts is None else facts.tokens
    summary = known.summary(signer, tokens, time.time())
    if summary is None:
        return context
    return context | {
        "title": known.title,
        "summary": summary,
        "fields": _noted(fields, summary.notes),
        "is_confirmed": facts is not None,
        "has_symbols": any(token.symbol for token in tokens.values()),
    }


def _facts(known: Known, scope: str, node: PageNode | None) -> Facts | None:
    """Return values that contracts report, None if they could not be read in time."""
    if node is None:
        return None

    async def read(nodes: Mapping[str, ChainNode]) -> Facts | None:
        return await read_facts(nodes[scope], known) if scope in nodes else None

    return node.ask([scope], read, FACTS_SECONDS)


def _noted(
    fields: Iterable[Field], notes: Mapping[str, str], path: str = ""
) -> tuple[Field, ...]:
    """Return fields with the notes of their paths."""
    return tuple(
        replace(
            field,
            note=notes.get(path + field.name, ""),
            fields=_noted(field.fields, notes, f"{path}{field.name}/"),
        )
        for field in fields
    )


def _texts(fields: Iterable[Field]) -> Iterable[str]:
    """Yield every text that a dapp has written into fields."""
    for field in fields:
        yield field.name
        yield field.value or ""
        yield from _texts(field.fields)
