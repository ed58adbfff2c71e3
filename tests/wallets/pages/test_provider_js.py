"""connect.js's EIP-1193 provider on a third-party page, with the service behind it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.browser import needs_chromium
from tests.support.wallet import A1, A2, BY_USER
from tests.wallets.pages.stage import SCOPES, Stage
from wallets.models import Dapp, Session
from wallets.services.dapps import disconnect_all
from wallets.services.sessions import revoke_session

pytestmark = needs_chromium

LISTEN = """() => {
    window.events = [];
    for (const name of ["connect", "disconnect", "accountsChanged", "chainChanged", "message"])
        portcullis.provider.on(name, (value) => events.push([name, value]));
}"""

REQUEST = """async ([method, params]) => {
    const request = { method, ...(params !== null && { params }) };
    try {
        return { result: await portcullis.provider.request(request) };
    } catch (error) {
        const { code, message, data } = error;
        return { error: { code, message, data, isError: error instanceof Error } };
    }
}"""

CLICK = """() => {
    const [button] = document.getElementsByTagName("button");
    button.onclick = () => {
        window.asked = portcullis.provider.request({ method: "eth_requestAccounts" });
    };
}"""


def answer(stage: Stage, method: str, params: Any = None) -> Any:
    """Return the provider's result or error for a request."""
    return stage.page.evaluate(REQUEST, [method, params])


def result(stage: Stage, method: str, *params: Any) -> Any:
    answered = answer(stage, method, list(params))
    assert "result" in answered, answered
    return answered["result"]


def error(stage: Stage, method: str, *params: Any) -> Any:
    answered = answer(stage, method, list(params))
    assert "error" in answered, answered
    assert answered["error"]["isError"]
    return answered["error"]


def events(stage: Stage, name: str) -> list[Any]:
    """Return the values of the events with a name, in order."""
    found = stage.page.evaluate("events")
    return [value for event, value in found if event == name]


def connected(stage: Stage) -> None:
    """Connect the page on mainnet, with the first account."""
    stage.page.evaluate(LISTEN)
    stage.connect(A1)
    stage.until(lambda: events(stage, "accountsChanged"))


def test_provider_is_announced_at_once_and_on_each_request(stage: Stage):
    stage.page.evaluate("dispatchEvent(new Event('eip6963:requestProvider'))")
    infos = stage.page.evaluate("providers.map(({ info }) => info)")
    assert infos[0] == infos[1]
    assert infos[0]["name"] == "Portcullis"
    assert infos[0]["icon"].startswith("data:image/svg+xml,")
    assert infos[0]["rdns"] == "1.0.0.127"
    assert len(infos[0]["uuid"]) == 36
    assert stage.page.evaluate(
        "providers.every((one) => Object.isFrozen(one)"
        " && one.provider === portcullis.provider)"
    )
    assert stage.page.evaluate("[window.ethereum, portcullis.provider.isMetaMask]") == [
        None,
        None,
    ]


def test_before_a_session_the_page_learns_the_chain_and_no_account(stage: Stage):
    assert result(stage, "eth_chainId") == "0x1"
    assert result(stage, "net_version") == "1"
    assert result(stage, "eth_accounts") == []
    assert result(stage, "eth_coinbase") is None
    assert result(stage, "wallet_getPermissions") == []
    assert error(stage, "eth_getBalance", A1, "latest")["code"] == 4100
    assert error(stage, "personal_sign", "0x48", A1)["code"] == 4100
    unknown = error(stage, "eth_sign", A1, "0x48")
    assert (unknown["code"], unknown["data"]) == (-32601, {"method": "eth_sign"})
    assert stage.sockets == []


@pytest.mark.parametrize(
    "request_",
    [
        *("undefined", "null", "[]", "'eth_accounts'", "{}", "{ method: 5 }"),
        "{ method: 'eth_accounts', params: 5 }",
    ],
)
def test_malformed_request_is_refused(stage: Stage, request_: str):
    code = stage.page.evaluate(
        f"portcullis.provider.request({request_}).catch(({{ code }}) => code)"
    )
    assert code == -32600


def test_accounts_are_asked_for_once_and_the_chain_is_read(stage: Stage):
    stage.is_played = False
    stage.page.evaluate(LISTEN)
    stage.page.evaluate(CLICK)
    window = stage.window()
    window.get_by_role("button", name="Connect").click()
    window.get_by_role("button", name="Approve").click()
    assert stage.page.evaluate("asked") == [A1]
    assert result(stage, "eth_requestAccounts") == [A1]
    assert result(stage, "eth_accounts") == [A1]
    assert result(stage, "eth_blockNumber") == "0x5"
    assert answer(stage, "eth_blockNumber") == {"result": "0x5"}
    assert events(stage, "accountsChanged") == [[A1]]
    assert events(stage, "connect") == [{"chainId": "0x1"}]
    accounts, chains = result(stage, "wallet_getPermissions")
    assert accounts["parentCapability"] == "eth_accounts"
    assert accounts["invoker"] == stage.origin
    assert accounts["caveats"][0]["value"] == [A1]
    assert chains["parentCapability"] == "endowment:permitted-chains"
    assert chains["caveats"][0]["value"] == ["0x1"]
    state = result(stage, "metamask_getProviderState")
    assert (state["accounts"], state["chainId"]) == ([A1], "0x1")


def test_user_who_rejects_is_reported(stage: Stage):
    stage.is_played = False
    stage.page.evaluate(CLICK)
    window = stage.window()
    window.get_by_role("button", name="Connect").click()
    window.get_by_role("button", name="Reject", exact=True).click()
    assert stage.page.evaluate("asked.catch(({ code }) => code)") == 4001
    assert result(stage, "eth_accounts") == []


def test_chain_is_switched_after_the_user_has_added_it(stage: Stage):
    connected(stage)
    with stage.context.expect_page() as opened:
        stage.page.evaluate(
            """() => { window.switched = portcullis.provider.request({
                method: "wallet_switchEthereumChain", params: [{ chainId: "0x89" }] }) }"""
        )
    opened.value.get_by_role("button", name="Approve").click()
    assert stage.page.evaluate("switched") is None
    assert result(stage, "eth_chainId") == "0x89"
    assert events(stage, "chainChanged") == ["0x89"]
    stage.until(lambda: stage.pages == [stage.page])
    assert result(stage, "wallet_switchEthereumChain", {"chainId": "0x1"}) is None
    assert result(stage, "wallet_addEthereumChain", {"chainId": "0x89"}) is None
    assert events(stage, "chainChanged") == ["0x89", "0x1", "0x89"]
    assert stage.pages == [stage.page]  # the user was not asked
    stage.page.reload()
    assert result(stage, "eth_chainId") == "0x89"


def test_unknown_chain_is_refused_with_the_codes_of_metamask(stage: Stage):
    connected(stage)
    refused = error(stage, "wallet_switchEthereumChain", {"chainId": "0x5"})
    assert refused["code"] == 4902
    assert 'Unrecognized chain ID "0x5"' in refused["message"]
    refused = error(stage, "wallet_addEthereumChain", {"chainId": "0x5"})
    assert refused["code"] == -32602
    for wrong in ("1", "0x", "0x01", 1, None):
        refused = error(stage, "wallet_switchEthereumChain", {"chainId": wrong})
        assert refused["code"] == -32602
    assert events(stage, "chainChanged") == []


def test_changes_in_the_wallet_are_events(stage: Stage):
    connected(stage)
    wallet = stage.wallet("connections")
    wallet.get_by_role("listitem").filter(has_text="localhost").get_by_text(
        "Edit"
    ).click()
    wallet.get_by_role("checkbox", name=A2).check()
    wallet.get_by_role("button", name="Save").click()
    stage.until(lambda: len(events(stage, "accountsChanged")) == 2)
    assert events(stage, "accountsChanged")[1] == [A1, A2]
    dapp = Dapp.objects.get(user=stage.person.user, ident=stage.origin)
    revoke_session(dapp_id=dapp.pk, cause=BY_USER)
    stage.until(lambda: len(events(stage, "accountsChanged")) == 3)
    assert events(stage, "accountsChanged")[2] == []
    assert result(stage, "eth_chainId") == "0x1"
    disconnect_all(user=stage.person.user, cause=BY_USER)
    stage.until(lambda: events(stage, "disconnect"))
    assert stage.page.evaluate("events.at(-1)[1].code") == 4900


def test_chain_that_the_session_loses_is_left(stage: Stage):
    stage.create_session()
    both = {**SCOPES, "eip155:137": SCOPES["eip155:1"]}
    session = {"sessionScopes": both, "sessionProperties": {}}
    stage.answer("wallet_createSession", session)
    stage.heard(1)
    stage.page.evaluate(LISTEN)
    assert result(stage, "wallet_switchEthereumChain", {"chainId": "0x89"}) is None
    stage.say(method="wallet_sessionChanged", params={"sessionScopes": SCOPES})
    stage.until(lambda: len(events(stage, "chainChanged")) == 2)
    assert events(stage, "chainChanged") == ["0x89", "0x1"]
    stage.say(method="wallet_sessionChanged", params={"sessionScopes": both})
    stage.ask(9, "wallet_getSession")
    assert len(stage.heard(9)["result"]["sessionScopes"]) == 2
    assert result(stage, "eth_chainId") == "0x1"  # the chain does not change back


def test_permissions_are_revoked_with_the_session(stage: Stage):
    connected(stage)
    wrong = error(stage, "wallet_revokePermissions", {"eth_sign": {}})
    assert wrong["code"] == -32602
    assert result(stage, "wallet_revokePermissions", {"eth_accounts": {}}) is None
    assert result(stage, "eth_accounts") == []
    assert events(stage, "accountsChanged") == [[A1], []]
    dapp = Dapp.objects.get(user=stage.person.user, ident=stage.origin)
    assert not Session.objects.get(dapp=dapp).scopes
    assert error(stage, "eth_blockNumber")["code"] == 4100


def test_other_page_of_the_origin_follows(stage: Stage):
    """The other page was open before the first one connected."""
    other = stage.open()
    other.evaluate(LISTEN)
    stage.connect(A1)
    stage.until(lambda: other.evaluate("events.some(([n]) => n === 'accountsChanged')"))
    accounts = "portcullis.provider.request({ method: 'eth_accounts' })"
    assert other.evaluate(accounts) == [A1]


def test_lost_socket_is_reported_and_messages_go_on(stage: Stage):
    methods = ["eth_subscribe", "eth_unsubscribe"]
    granted = {"eip155:1": {**SCOPES["eip155:1"], "methods": methods}}
    granted["eip155:1"]["notifications"] = ["eth_subscription"]
    session = {"sessionScopes": granted, "sessionProperties": {}}
    stage.create_session()
    stage.answer("wallet_createSession", session)
    stage.heard(1)
    stage.page.evaluate(LISTEN)
    stage.page.evaluate(
        """() => { window.subscribed = portcullis.provider.request({
            method: "eth_subscribe", params: ["newHeads"] }) }"""
    )
    stage.answer("wallet_invokeMethod", "0xaa")
    assert stage.page.evaluate("subscribed") == "0xaa"
    stage.sockets[-1].close(code=1012)
    stage.until(lambda: len(stage.sockets) == 2)
    assert stage.page.evaluate("events.map(([name, { code }]) => [name, code])")[0] == [
        "disconnect",
        1013,
    ]
    stage.answer("wallet_invokeMethod", "0xbb")
    stage.answer("wallet_getSession", session)
    inner = {"subscription": "0xbb", "result": "head"}
    notification = {"method": "eth_subscription", "params": inner}
    params = {"scope": "eip155:1", "notification": notification}
    stage.say(method="wallet_notify", params=params)
    stage.until(lambda: events(stage, "message"))
    data = {"subscription": "0xaa", "result": "head"}
    assert events(stage, "message") == [{"type": "eth_subscription", "data": data}]
    assert stage.page.evaluate("portcullis.provider.isConnected()") is True


# The bridge's channel for EIP-1193


def ask_ethereum(stage: Stage, number: int, method: str, *params: Any) -> Any:
    """Return the answer on MetaMask's channel for EIP-1193."""
    frame = {"jsonrpc": "2.0", "id": number, "method": method, "params": list(params)}
    stage.page.evaluate("frame => ask(frame, 'metamask-provider')", frame)

    def find() -> Any:
        heard = stage.page.evaluate("heardByEthereum")
        return next((one for one in heard if one.get("id") == number), None)

    return stage.until(find)


def test_channel_of_the_bridge_is_served_by_the_provider(stage: Stage):
    connected(stage)
    assert ask_ethereum(stage, 1, "eth_accounts")["result"] == [A1]
    assert ask_ethereum(stage, 2, "eth_blockNumber")["result"] == "0x5"
    refused = ask_ethereum(stage, 3, "wallet_switchEthereumChain", {"chainId": "0x5"})
    assert refused["error"]["code"] == 4902
    assert ask_ethereum(stage, 4, "metamask_getProviderState")["result"] == {
        **{"accounts": [A1], "chainId": "0x1"},
        **{"networkVersion": "1", "isUnlocked": True},
    }
    ask_ethereum(stage, 5, "wallet_revokePermissions", {"eth_accounts": {}})
    events = "heardByEthereum.filter(({ id }) => id === undefined)"
    heard = stage.until(lambda: stage.page.evaluate(events)[1:])
    assert heard == [
        {"jsonrpc": "2.0", "method": "metamask_accountsChanged", "params": []}
    ]


ANNOUNCE_METAMASK = """() => {
    const info = { uuid: crypto.randomUUID(), name: "MetaMask", icon: "data:,",
                   rdns: "io.metamask" };
    const detail = Object.freeze({ info, provider: {} });
    dispatchEvent(new CustomEvent("eip6963:announceProvider", { detail }));
}"""


def test_channel_of_metamasks_extension_is_left_to_it(stage: Stage):
    connected(stage)
    assert ask_ethereum(stage, 1, "eth_accounts")["result"] == [A1]
    stage.page.evaluate(ANNOUNCE_METAMASK)
    stage.page.evaluate("heardByEthereum.length = 0")
    frame = {"jsonrpc": "2.0", "id": 2, "method": "eth_accounts"}
    stage.page.evaluate("frame => ask(frame, 'metamask-provider')", frame)
    result(stage, "wallet_revokePermissions", {"eth_accounts": {}})
    assert events(stage, "accountsChanged")[-1] == []
    stage.page.evaluate("frame => ask(frame)", {**frame, "method": "wallet_getSession"})
    stage.until(lambda: stage.page.evaluate("heard.some(({ id }) => id === 2)"))
    assert stage.page.evaluate("heardByEthereum") == []
