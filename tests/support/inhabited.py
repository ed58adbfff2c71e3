"""A service with objects of all kinds, so that no page is empty."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta

from django.contrib.auth.tokens import default_token_generator
from django.db import transaction
from django.test import Client
from django.utils import timezone
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode

from keys.accounts.links import make_token
from keys.models import (
    AccountMail,
    AllowlistKind,
    ApiKey,
    DailyUse,
    Refusal,
    Role,
    Scope,
    User,
)
from keys.services import (
    Actor,
    accept_invitation,
    approve_access,
    change_role,
    create_key,
    decline_access,
    disable_key,
    invite,
    issue_key,
    issue_token,
    request_access,
    set_allowlist,
)
from keys.services.limits import set_limits, set_plan
from keys.usage.daily import today
from networks.models import Network
from tests.support import copies
from tests.support.signing import MAIL, add_key, approval_of
from tests.support.usage import add_usage
from tests.support.wallet import A1, A2, BY_USER
from wallets.consents import get_consent
from wallets.models import BlockedDapp, Dapp, DappKind, Event
from wallets.proposals import Choice
from wallets.scopes import ScopeObject
from wallets.services import consent, pairing
from wallets.services.accounts import add_account
from wallets.services.dapps import block_dapp, block_for_all
from wallets.services.sessions import lock_session, write_session
from wallets.services.signatures import request_signature

CHAIN_ID = 202611
CHAIN = f"eip155:{CHAIN_ID}"
"""The sample chain."""

SIGNED = ("personal_sign", "eth_signTypedData_v4", "eth_sendTransaction")


@dataclass(frozen=True, slots=True)
class Inhabitants:
    """A customer with keys and a wallet, a member, a staff user, and links in emails."""

    customer: User
    member: User
    """A viewer of the customer's account."""
    staff: User
    mailed: list[str]
    secrets: list[str]
    """The secrets of the keys, which must not appear in a log."""


def inhabit() -> Inhabitants:
    """Import the sample chain, and create objects of every kind."""
    copies.demo_chain()
    network = Network.objects.get()
    customer = User.objects.create_user("customer@example.org", "a password")
    staff = User.objects.create_superuser("staff@example.org", "a password")
    secret = _keys(customer, staff, network)
    _wallet(customer)
    member = User.objects.get(email="colleague@example.org")
    return Inhabitants(customer, member, staff, _mails(), [secret])


def logged_in(user: User) -> Client:
    """Return a browser in which a user has logged in."""
    client = Client()
    client.force_login(user)
    return client


def _keys(customer: User, staff: User, network: Network) -> str:
    by_customer, by_staff = Actor(customer, "192.0.2.1"), Actor(staff, "192.0.2.2")
    set_plan(slug="free", name="Free", credits_per_second=50_000, is_default=True)
    plan, _ = set_plan(
        slug="growth", name="Growth", credits_per_second=90_000, credits_per_day=10**9
    )
    others = [
        create_key(owner=customer, name=name, actor=by_customer)
        for name in ("Unpaid", "New")
    ]
    issued = issue_key(owner=customer, name="Indexer", actor=by_customer)
    key = issued.api_key
    set_limits(api_key=key, plan=plan, burst=200_000, actor=by_staff)
    set_allowlist(
        api_key=key,
        kind=AllowlistKind.ORIGIN,
        values=["https://dapp.example"],
        actor=by_customer,
    )
    asked = [
        request_access(
            api_key=one,
            network=network,
            tracers=["callTracer"],
            reason="to see what a transfer does",
            actor=by_customer,
        )
        for one in (key, *others)
    ]
    expires_at = timezone.now() + timedelta(days=30)
    approve_access(request=asked[0], expires_at=expires_at, actor=by_staff)
    decline_access(request=asked[1], answer="Not on this plan.", actor=by_staff)
    disable_key(api_key=asked[1].api_key, reason="unpaid", actor=by_staff)
    _usage(key, network)
    _members(customer, by_customer)
    issue_token(owner=staff, name="billing", scopes=[Scope.values[0]], actor=by_staff)
    return issued.secret


def _members(customer: User, by_customer: Actor) -> None:
    """Have the customer invite two people, and belong to the account of another one."""
    for name in ("colleague", "manager"):
        member = User.objects.create_user(f"{name}@example.org", "a password")
        issued = invite(
            account=customer,
            email=member.email,
            role=Role.VIEWER,
            actor=by_customer,
        )
        joined = accept_invitation(
            token=issued.token, user=member, actor=Actor(member, "192.0.2.3")
        )
    change_role(membership=joined, role=Role.OWNER, actor=by_customer)
    invite(
        account=customer,
        email="newcomer@example.org",
        role=Role.DEVELOPER,
        actor=by_customer,
    )
    company = User.objects.create_user("company@example.org", "a password")
    issued = invite(account=company, email=customer.email, role=Role.DEVELOPER)
    accept_invitation(token=issued.token, user=customer, actor=by_customer)


def _usage(key: ApiKey, network: Network) -> None:
    now = timezone.now()
    methods = ("eth_getBlockByHash", "eth_getStorageAt", "debug_traceBlockByHash")
    for number, method in enumerate(methods):
        for outcome, calls in (("ok", 3000), ("denied", 40), ("limited", 7)):
            add_usage(
                key,
                network,
                now - timedelta(minutes=3 + number),
                method=method,
                outcome=outcome,
                calls=calls,
            )
    DailyUse.objects.create(
        day=today(), api_key=key, calls=9141, failed=141, credits=182_820
    )
    Refusal.objects.create(
        api_key=key,
        network=network,
        reason="method_not_entitled",
        method=methods[2],
        last_at=timezone.now(),
        calls=40,
    )


def _wallet(user: User) -> None:
    add_account(user=user, address=A1, label="Savings", cause=BY_USER)
    add_account(user=user, address=A2, cause=BY_USER)
    code = pairing.start_program_pairing(user=user, label="Trading bot")
    program = pairing.redeem_program_code(code=code, cause=BY_USER).token.dapp
    asked = _ask(program)
    found = get_consent(asked)
    consent.approve_session(
        request_id=asked.pk,
        user=user,
        digest=found.digest,
        choice=Choice(scopes=frozenset(found.asked), addresses=frozenset(found.ticked)),
        cause=BY_USER,
    )
    for origin in ("https://dapp.example", "https://blocked.example"):
        pairing.pair_dapp(user=user, kind=DappKind.WEB, ident=origin, cause=BY_USER)
    _ask(Dapp.objects.get(ident="https://dapp.example"))
    block_dapp(dapp=Dapp.objects.get(ident="https://blocked.example"), cause=BY_USER)
    block_for_all(blocked=BlockedDapp(ident="https://bad.example"), cause=BY_USER)
    pairing.start_program_pairing(user=user, label="Another bot")
    _signatures(user)


@transaction.atomic
def _signatures(user: User) -> None:
    """Create a pending request for a signature of each kind."""
    account = add_key(user)
    granted = ScopeObject(SIGNED, accounts=(f"{CHAIN}:{account.address}",))
    dapp = pairing.pair_dapp(
        user=user, kind=DappKind.WEB, ident="https://sign.example", cause=BY_USER
    )
    session = lock_session(dapp.pk)
    write_session(session, {CHAIN: granted}, event=Event.GRANTED, cause=BY_USER)
    data = {**MAIL, "domain": {"name": "Ether Mail", "chainId": CHAIN_ID}}
    subjects = (
        {"message": "0x" + b"I agree to the terms of sign.example.".hex()},
        {"data": json.dumps(data)},
        {"transaction": approval_of(CHAIN_ID)},
    )
    for method, subject in zip(SIGNED, subjects, strict=True):
        request_signature(
            dapp_id=dapp.pk,
            method=method,
            body={"scope": CHAIN, "address": account.address, **subject},
            cause=BY_USER,
        )
    # They stay pending until the last page was requested.
    tomorrow = timezone.now() + timedelta(days=1)
    consent.ConsentRequest.objects.pending().update(expires_at=tomorrow)


def _ask(dapp: Dapp) -> consent.ConsentRequest:
    wanted = {CHAIN: ScopeObject(("eth_chainId", "eth_getBlockByHash"), (), ())}
    return consent.request_session(
        dapp_id=dapp.pk, wanted=wanted, expires_at=None, cause=BY_USER
    )


def _mails() -> list[str]:
    """Return the paths of links in emails.

    One is for somebody who does not log in meanwhile, which would make it useless.
    """
    mail = AccountMail.objects.create(email="new@example.org")
    user = User.objects.create_user("forgetful@example.org", "a password")
    number = urlsafe_base64_encode(force_bytes(user.pk))
    token = default_token_generator.make_token(user)
    company = User.objects.get(email="company@example.org")
    invited = invite(account=company, email="hired@example.org", role=Role.VIEWER)
    return [
        f"/account/invitations/{invited.token}",
        f"/account/signup/{make_token(mail)}",
        f"/account/reset/{number}/{token}",
    ]
