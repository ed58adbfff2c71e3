"""The page of a signature request: a description of the data, and a passphrase field."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from http import HTTPStatus
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from abi.addresses import checksummed
from legible.text import hides_something
from wallets.effects.contracts import Facts, read_facts
from wallets.errors import NotSent
from wallets.models import ConsentRequest, Keystore
from wallets.nodes.page_node import PageNode, node_of
from wallets.pages.effects import effects_of
from wallets.pages.policy import cause_of, user_of, wallet_page
from wallets.pages.recent import after_recent_login
from wallets.pages.requests import reject, show_closed, to_inbox
from wallets.pages.transactions import describe_transaction, uploaded_for
from wallets.pages.unlocking import PassphraseForm, unlocking
from wallets.pages.words import (
    ASKS,
    Identity,
    identity,
    pooling_scopes,
    scope_names,
)
from wallets.services.requests import NotPending
from wallets.services.sending import approve_transaction
from wallets.services.sessions import Stale
from wallets.services.signatures import approve_signature
from wallets.signature_requests import (
    SEND_TRANSACTION,
    SignatureRequest,
    get_signature_request,
)
from wallets.signing.known.recognition import Known, recognize
from wallets.signing.logins import read_login
from wallets.signing.messages import readable
from wallets.signing.transactions import Transaction
from wallets.signing.typed_data import Field, TypedData
from wallets.upstream import ChainNode


@wallet_page
@sensitive_post_parameters()
@require_http_methods(["GET", "HEAD", "POST"])
@after_recent_login
def signature(request: HttpRequest, pk: int) -> HttpResponse:
    """Show a request for a signature. A POST approves or rejects it."""
    own = ConsentRequest.objects.filter(dapp__user=user_of(request))
    asked = own.for_signatures().select_related("dapp")
    found = get_object_or_404(asked, pk=pk)
    if request.method != "POST":
        return _show(request, found, PassphraseForm())
    form = PassphraseForm(request.POST)
    try:
        if request.POST.get("decision") != "approve":
            message = reject(request, found)
        elif _has_signed(request, found, form):
            message = _done(found)
        else:
            return _show(request, found, form, status=HTTPStatus.BAD_REQUEST)
    except NotSent as error:
        messages.error(request, f"Sending the transaction failed: {error}.")
        return to_inbox(request)
    except NotPending:
        found.refresh_from_db()
        return _show(request, found, PassphraseForm(), status=HTTPStatus.CONFLICT)
    except Stale:
        fault = "The request has changed since you opened this page. Check it again."
        form = PassphraseForm()
        return _show(request, found, form, fault=fault, status=HTTPStatus.CONFLICT)
    messages.success(request, message)
    return to_inbox(request)


def _has_signed(
    request: HttpRequest, found: ConsentRequest, form: PassphraseForm
) -> bool:
    """Sign with the form's passphrase; return False and add an error if it fails.

    Raises: NotPending, Stale, NotSent.
    """
    if form.is_valid():
        question = get_signature_request(found)
        is_sent = isinstance(question.subject, Transaction)
        approve = approve_transaction if is_sent else approve_signature
        with unlocking(form, question.account):
            approve(
                request_id=found.pk,
                user=user_of(request),
                digest=request.POST.get("digest", ""),
                passphrase=form.cleaned_data["passphrase"],
                cause=cause_of(request),
            )
    return form.is_valid()


def _done(found: ConsentRequest) -> str:
    """Return a message for the user about an approved request."""
    if found.method != SEND_TRANSACTION:
        return f"Signed for {found.dapp.name}."
    found.refresh_from_db()
    return f"Sent the transaction for {found.dapp.name}. Its hash is {found.result}."


def _show(
    request: HttpRequest,
    found: ConsentRequest,
    form: PassphraseForm,
    *,
    fault: str = "",
    status: HTTPStatus = HTTPStatus.OK,
) -> HttpResponse:
    """Return the page, or the outcome of a request that is closed."""
    if not ConsentRequest.objects.pending().filter(pk=found.pk).exists():
        return show_closed(request, found, status)
    question = get_signature_request(found)
    who = identity(found.dapp)
    context = {
        "identity": who,
        "asks": ASKS[found.method],
        "question": question,
        "network": scope_names().get(question.scope, question.scope),
        "can_sign": Keystore.objects.filter(account=question.account).exists(),
        "form": form,
        "fault": fault,
        **_subject(request, question, who),
    }
    return render(request, "wallets/signature.html", context, status=status)


def _subject(
    request: HttpRequest, question: SignatureRequest, who: Identity
) -> dict[str, Any]:
    """Return the template's context for the subject of a signature."""
    subject, node = question.subject, node_of(request)
    signer = question.request.body["address"]
    if isinstance(subject, Transaction):
        effects = effects_of(subject, question.scope, signer, node)
        abi_of = uploaded_for(subject, user_of(request))
        described = describe_transaction(subject, abi_of)
        stays_pending = question.scope in pooling_scopes()
        return {**described, "effects": effects, "stays_pending": stays_pending}
    if isinstance(subject, TypedData):
        return describe_typed_data(subject, question.scope, signer, node)
    text = readable(subject)
    login = read_login(
        subject,
        origin=who.origin,
        address=signer,
        chain_id=question.scope.partition(":")[2],
        now=timezone.now(),
    )
    return {
        "message": subject,
        "hex": "0x" + subject.hex(),
        "text": text,
        "hides": text is not None and hides_something(text),
        "login": login,
    }


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
