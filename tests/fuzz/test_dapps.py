"""Random calls of a dapp, valid and invalid: each gets exactly one answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings as django_settings
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jsonrpc import text
from jsonrpc.errors import RpcError
from tests.support.signing import MAIL, SIGNER, add_key
from tests.support.wallet import A1, A2, Rig, running_wallet
from wallets.errors import InternalError, WalletError
from wallets.models import ConsentRequest, Dapp, Session
from wallets.permissions import CHAIN_METHODS, EVM_WALLET_METHODS
from wallets.serving.wallet import Wallet
from wallets.sockets.frames import Refused, read_call, read_frame, write_failure

_texts = st.text(max_size=12) | st.sampled_from(["\0", "\ud800", "0x", "x" * 300])
_scalars = (
    st.none()
    | st.booleans()
    | st.integers(min_value=-(2**70), max_value=2**70)
    | st.floats(allow_nan=False, allow_infinity=False)  # JSON has neither
    | _texts
)
_values = st.recursive(
    _scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(_texts, inner, max_size=3)
    ),
    max_leaves=6,
)
_scopes = st.sampled_from(
    [
        *("eip155:1", "eip155:137", "eip155:999", "eip155", "eip155:01", "EIP155:1"),
        *("wallet", "wallet:eip155", "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp", ""),
    ]
)
_names = st.sampled_from([*CHAIN_METHODS, *EVM_WALLET_METHODS, "eth_accounts"])
_accounts = st.sampled_from([f"eip155:{n}:{a}" for n in (0, 1, 5) for a in (A1, A2)])
_references = st.sampled_from(["1", "137", "01", "@", ""])
_scope_objects = st.fixed_dictionaries(
    {"methods": st.lists(_names | _texts, max_size=4), "notifications": st.just([])},
    optional={
        "accounts": st.lists(_accounts | _texts, max_size=3),
        "references": st.lists(_references, max_size=3),
        "extra": _values,
    },
)
_asked = st.dictionaries(_scopes | _texts, _scope_objects | _values, max_size=4)
_create = st.fixed_dictionaries(
    {},
    optional={
        "optionalScopes": _asked | _values,
        "requiredScopes": _asked | _values,
        "sessionProperties": _values
        | st.fixed_dictionaries({"expiry": _texts | st.just("2099-01-01T00:00:00Z")}),
    },
)
_hex = st.from_regex(r"0[xX]?[0-9a-fA-F]{0,70}", fullmatch=True)
_addresses = st.sampled_from([SIGNER, A1, A2, SIGNER.upper(), "0x12"])
_members = st.sampled_from(["from", "to", "value", "data", "gas", "type", "chainId"])
_transactions = st.dictionaries(_members, _hex | _addresses | _values, max_size=6)
_data = st.sampled_from(["types", "primaryType", "domain", "message"]).flatmap(
    lambda name: _values.map(lambda value: {**MAIL, name: value})
)
_chains = st.fixed_dictionaries({"chainId": _hex | _values})
_arguments = (
    _hex | _addresses | _transactions | _data | st.just(MAIL) | _chains | _values
)
_request = st.fixed_dictionaries(
    {"method": _names | _names | _values},
    optional={"params": st.lists(_arguments, max_size=3) | _values},
)
_invoke = st.fixed_dictionaries(
    {"scope": _scopes | _values, "request": _request | _values}
)
_revoke = st.fixed_dictionaries(
    {}, optional={"scopes": st.lists(_scopes, max_size=2) | _values}
)
_calls = st.one_of(
    st.tuples(st.just("wallet_invokeMethod"), _invoke),
    st.tuples(st.just("wallet_invokeMethod"), _invoke),
    st.tuples(st.just("wallet_createSession"), _create),
    st.tuples(st.just("wallet_revokeSession"), _revoke),
    st.tuples(st.just("wallet_getSession") | _texts, _values),
)


@pytest.fixture(scope="module")
def parts(module_db: None) -> Iterator[tuple[asyncio.Runner, Wallet]]:
    with running_wallet() as started:
        yield started


@pytest.fixture(scope="module")
def rig(parts: tuple[asyncio.Runner, Wallet]) -> Rig:
    """Return a rig with a session for everything. Its user no longer answers requests."""
    found = Rig(*parts)
    add_key(found.user)
    found.create("eip155:1", "wallet:eip155", "wallet", accounts={SIGNER, A1})
    return found


def heard(call: tuple[str, Any]) -> tuple[str, Any] | None:
    """Return a call after encoding and decoding, None if it can't be encoded."""
    method, params = call
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    try:
        frame = text.dump(message)
    except (TypeError, ValueError, UnicodeEncodeError):
        return None
    try:
        read = read_call(read_frame(frame.decode()))
    except Refused as refusal:
        is_unfit = text.has_lone_surrogate(params)
        assert refusal.error.code in ((-32602,) if is_unfit else (-32700, -32600))
        return None
    assert read is not None
    return read.method, read.params


@given(call=_calls)
@settings(
    max_examples=250,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_every_call_is_answered_with_a_result_or_a_precise_error(
    rig: Rig, call: tuple[str, Any]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(django_settings, "WALLETS_REQUEST_SECONDS", 0.02)
        known = heard(call)
        if known is None:
            return
        Dapp.objects.filter(pk=rig.dapp.pk).update(muted_until=None)
        ConsentRequest.objects.filter(dapp=rig.dapp).delete()
        before = Session.objects.get(dapp=rig.dapp)
        try:
            found = rig.answer(rig.s1, *known)
        except (WalletError, RpcError) as error:
            assert not isinstance(error, InternalError), error
            assert error.code != -32603
            assert error.message
            # The response may contain a lone surrogate.
            json.loads(write_failure(b"1", error))
        else:
            json.loads(found.result)
        after = Session.objects.get(dapp=rig.dapp)
        if known[0] != "wallet_revokeSession":
            assert after.version == before.version  # the user has approved nothing
        else:
            kept = {"stored_scopes": before.stored_scopes}
            Session.objects.filter(pk=after.pk).update(**kept)
