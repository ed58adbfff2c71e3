"""The contents of the consent page."""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256

from wallets import proposals, scopes
from wallets.caip import Address
from wallets.models import Account, ConsentRequest, Session
from wallets.offers import offer_to
from wallets.proposals import Proposal
from wallets.scopes import Scopes


@dataclass(frozen=True, slots=True)
class Consent:
    """A request for a session, with the data that its consent page shows.

    asked: the scopes with a checkbox, without accounts. All are ticked initially.
    accounts: the user's accounts, in the order in which dapps see them.
    ticked: the addresses of accounts that are ticked initially.
    digest: SHA-256 of the page's contents in hex. It detects a change of the contents
        between the display of the page and the user's decision.
    """

    request: ConsentRequest
    proposal: Proposal
    session: Session
    asked: Scopes
    accounts: list[Account]
    ticked: tuple[Address, ...]
    digest: str

    @property
    def own(self) -> list[Address]:
        """The addresses of the accounts."""
        return [account.named for account in self.accounts]

    @property
    def new(self) -> frozenset[str]:
        """The requested scopes that the session does not have yet."""
        return frozenset(self.asked.keys() - self.session.scopes.keys())


def get_consent(request: ConsentRequest) -> Consent:
    """Return the contents of the page for a request for a session."""
    proposal = proposals.from_stored(request.body)
    session = Session.objects.select_related("dapp").get(dapp_id=request.dapp_id)
    of_user = Account.objects.filter(user_id=request.dapp.user_id)
    accounts = list(of_user.select_related("keystore"))
    own = [account.named for account in accounts]
    offer = offer_to(request.dapp.user_id)
    asked = proposals.asked_scopes(session.scopes, proposal, offer)
    ticked = proposals.preselected(session.scopes, proposal.addresses, own)
    return Consent(
        request=request,
        proposal=proposal,
        session=session,
        asked=asked,
        accounts=accounts,
        ticked=ticked,
        digest=_digest(request.pk, request.body, session.version, asked, own, ticked),
    )


def _digest(
    request_id: int, body: object, version: int, asked: Scopes, *rest: object
) -> str:
    shown = [request_id, body, version, scopes.to_stored(asked), *rest]
    return sha256(json.dumps(shown, sort_keys=True).encode()).hexdigest()
