"""Cases 14–63: requests of dapps for sessions, and their results."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.coroutines import scenario
from tests.support.dapps import Owner, case, failure, nothing_comes, orm, sockets_apart
from tests.support.wallet import A1, M0
from wallets.models import ConsentRequest

ONE = {"optionalScopes": {"eip155:1": M0}}
EMPTY = {"sessionScopes": {}, "sessionProperties": {}}

KNOWN = """
    personal_sign eth_signTypedData_v4 wallet_watchAsset wallet_sendCalls
    wallet_getCallsStatus wallet_getCapabilities wallet_requestExecutionPermissions
    wallet_getGrantedExecutionPermissions wallet_getSupportedExecutionPermissions
    eth_sendTransaction eth_decrypt eth_getEncryptionPublicKey web3_clientVersion
    eth_subscribe eth_unsubscribe eth_blockNumber eth_call eth_chainId eth_estimateGas
    eth_feeHistory eth_gasPrice eth_getBalance eth_getBlockByHash eth_getBlockByNumber
    eth_getBlockTransactionCountByHash eth_getBlockTransactionCountByNumber eth_getCode
    eth_getFilterChanges eth_getFilterLogs eth_getLogs eth_getProof eth_getStorageAt
    eth_getTransactionByBlockHashAndIndex eth_getTransactionByBlockNumberAndIndex
    eth_getTransactionByHash eth_getTransactionCount eth_getTransactionReceipt
    eth_getUncleCountByBlockHash eth_getUncleCountByBlockNumber eth_newBlockFilter
    eth_newFilter eth_newPendingTransactionFilter eth_sendRawTransaction eth_syncing
    eth_uninstallFilter
"""
"""The order in which methods are granted: MetaMask's, which clients compare with. Methods
that MetaMask does not know come last."""


OF_REAL_BLOCKS = {"eth_config", "eth_gasPrice", "eth_maxPriorityFeePerGas"}
"""Methods without parameters that read more than the made-up block of a test has."""


def scopes(**named: Any) -> dict[str, Any]:
    """Return parameters that request scopes, whose colons are written as `_`."""
    found = {name.replace("_", ":"): value for name, value in named.items()}
    return {"optionalScopes": found}


# Without a session


@pytest.mark.parametrize(
    ("method", "params", "expected"),
    [
        case(14, "wallet_getSession", {}, EMPTY),
        case(15, "wallet_getSession", [], EMPTY),
        case(15, "wallet_getSession", None, EMPTY),
        case(15, "wallet_getSession", {"sessionId": "0xdead"}, EMPTY),
        case(16, "wallet_revokeSession", {}, True),
        case(17, "wallet_revokeSession", None, True),
        case(17, "wallet_revokeSession", {"sessionId": "x"}, True),
        case(18, "wallet_revokeSession", {"scopes": ["eip155:1"]}, True),
    ],
)
@scenario
async def test_without_a_session(
    owner: Owner, method: str, params: Any, expected: Any
) -> None:
    async with sockets_apart(owner) as (s1, s2):
        assert await s1.call(method, params) == expected
        await nothing_comes(s2, 0.2)
        assert s1.received.empty()


@pytest.mark.case(19)
@scenario
async def test_scopes_to_revoke_are_a_list(owner: Owner) -> None:
    async with await owner.connect() as s1:
        wrong = s1.call("wallet_revokeSession", {"scopes": "eip155:1"})
        assert (await failure(wrong)).code == -32602


# Requests that are rejected without asking the user


MEMBERS = {"methods": ["eth_chainId"], "notifications": []}

MESSAGES = {
    5100: "Requested scopes are not supported",
    5302: "Invalid sessionProperties requested",
}


def one_scope(path: str = "") -> tuple[str, str]:
    """Return parameter and path of an error in the scope `eip155:1`."""
    return "optionalScopes", f"eip155:1{path}"


@pytest.mark.parametrize(
    ("params", "param", "path"),
    [
        case(20, ["x"], "", ""),
        case(20, [], "", ""),
        case(21, None, "", ""),
        case(24, {"optionalScopes": "x"}, "optionalScopes", ""),
        case(24, {"optionalScopes": None}, "optionalScopes", ""),
        case(24, {"optionalScopes": []}, "optionalScopes", ""),
        case(24, {"requiredScopes": None}, "requiredScopes", ""),
        case(27, {**ONE, "sessionProperties": []}, "sessionProperties", ""),
        case(27, {**ONE, "sessionProperties": "x"}, "sessionProperties", ""),
        case(27, {**ONE, "sessionProperties": None}, "sessionProperties", ""),
        case(28, scopes(eip155_1={"notifications": []}), *one_scope(".methods")),
        case(29, scopes(eip155_1={"methods": []}), *one_scope(".notifications")),
        case(
            30,
            scopes(eip155_1={**M0, "methods": [{"foo": "bar"}]}),
            *one_scope(".methods[0]"),
        ),
        case(30, scopes(eip155_1={**M0, "methods": "x"}), *one_scope(".methods")),
        case(30, scopes(eip155_1={**M0, "methods": [1]}), *one_scope(".methods[0]")),
        case(31, scopes(eip155_1="x"), *one_scope()),
        case(31, scopes(eip155_1=[]), *one_scope()),
        case(31, scopes(eip155_1=None), *one_scope()),
    ],
)
@scenario
async def test_wrong_types_are_refused_and_the_user_not_asked(
    owner: Owner, params: Any, param: str, path: str
) -> None:
    async with await owner.connect() as s1:
        error = await failure(s1.call("wallet_createSession", params))
        assert (error.code, error.message) == (-32602, "Invalid method parameter(s).")
        (fault,) = error.data
        assert (fault["param"], fault["path"]) == (param, path)
        assert fault["message"]
        asked = ConsentRequest.objects.filter(dapp=owner.dapp)
        assert not await orm(asked.exists)


@pytest.mark.parametrize(
    ("params", "code"),
    [
        case(22, {}, 5100),
        case(23, {"optionalScopes": {}}, 5100),
        case(25, {**ONE, "sessionProperties": {}}, 5302),
        case(26, {**scopes(eip155_999=M0), "sessionProperties": {}}, 5302),
        case(32, scopes(eip155_10124=M0), 5100),
        case(33, scopes(foobar={"methods": ["m"], "notifications": []}), 5100),
        case(35, scopes(eip155=MEMBERS), 5100),
        case(36, scopes(eip155={**MEMBERS, "references": []}), 5100),
        case(38, scopes(eip155={**M0, "references": ["1", "@"]}), 5100),
        case(39, scopes(eip155_1={**M0, "references": []}), 5100),
        case(40, scopes(eip155_1={**M0, "references": ["137"]}), 5100),
        case(41, scopes(eip155_1={**M0, "methods": [""]}), 5100),
        case(41, scopes(eip155_1={**M0, "methods": ["  "]}), 5100),
        case(42, scopes(eip155_1={**M0, "notifications": [""]}), 5100),
        case(43, scopes(eip155_1={**M0, "foo": 1}), 5100),
        case(45, scopes(eip155_01=M0), 5100),
        case(45, scopes(eip155_1e1=M0), 5100),
        case(45, scopes(eip155_0=M0), 5100),
        case(45, scopes(EIP155_1=M0), 5100),
        case(45, {"optionalScopes": {"eip155:1\n": M0}}, 5100),
        case(45, scopes(ei_1=M0), 5100),
        case(45, {"optionalScopes": {"eip155:": M0}}, 5100),
        case(45, {"optionalScopes": {"not a namespace": M0}}, 5100),
        case(46, {"optionalScopes": {"eip155:" + "1" * 33: M0}}, 5100),
        case(46, {"optionalScopes": {"x" * 9: M0}}, 5100),
        case(60, scopes(wallet_solana=M0), 5100),
        case(60, scopes(wallet_wallet=M0), 5100),
        case(61, scopes(solana_5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp=M0), 5100),
    ],
)
@scenario
async def test_what_can_not_be_granted_is_refused_and_the_user_not_asked(
    owner: Owner, params: Any, code: int
) -> None:
    async with await owner.connect() as s1:
        error = await failure(s1.call("wallet_createSession", params))
        assert (error.code, error.message) == (code, MESSAGES[code])
        asked = ConsentRequest.objects.filter(dapp=owner.dapp)
        assert not await orm(asked.exists)
        assert await s1.call("wallet_getSession") == EMPTY


# Scopes that such requests grant


@pytest.mark.parametrize(
    ("params", "names"),
    [
        case(34, scopes(foobar=MEMBERS, eip155_1=M0), ["eip155:1"]),
        case(
            37,
            scopes(eip155={**M0, "references": ["1", "137"]}),
            ["eip155:1", "eip155:137"],
        ),
        case(44, scopes(eip155_1={**M0, "rpcDocuments": [], "rpcEndpoints": []}), None),
        case(
            48,
            {"requiredScopes": {"eip155:1": M0}, **scopes(eip155_137=M0)},
            ["eip155:1", "eip155:137"],
        ),
        case(49, {"requiredScopes": {"eip155:999": M0}, **ONE}, ["eip155:1"]),
        case(57, scopes(wallet=M0, eip155_1=M0), ["wallet", "eip155:1"]),
        case(58, scopes(wallet_eip155=M0, eip155_1=M0), ["wallet:eip155", "eip155:1"]),
        case(
            59,
            scopes(wallet={**M0, "references": ["eip155"]}, eip155_1=M0),
            ["wallet:eip155", "eip155:1"],
        ),
        case(62, {**ONE, "sessionProperties": {"expiry": "date", "foo": "bar"}}, None),
        case(63, {**ONE, "sessionId": "x", "scopedProperties": 1, "scopes": 2}, None),
    ],
)
@scenario
async def test_scopes_that_are_granted(
    owner: Owner, params: Any, names: list[str] | None
) -> None:
    async with await owner.connect() as s1:
        found = await owner.granted(s1, params)
    assert list(found) == ["sessionScopes", "sessionProperties"]
    assert found["sessionProperties"] == {}
    assert list(found["sessionScopes"]) == (names or ["eip155:1"])
    for name, scope in found["sessionScopes"].items():
        assert list(scope) == ["accounts", "methods", "notifications"]
        assert scope["accounts"] == ([f"{name}:{A1}"] if name != "wallet" else [])


@pytest.mark.case(47, 50)
@scenario
async def test_scopes_that_are_named_twice_are_merged(owner: Owner) -> None:
    both = {"references": ["1", "137"], "methods": ["eth_blockNumber"]}
    first = {"methods": ["eth_chainId"], "notifications": []}
    params = {
        "requiredScopes": {"eip155:1": {**M0, "methods": ["eth_syncing"]}},
        **scopes(eip155={"notifications": [], **both}, eip155_1=first),
    }
    async with await owner.connect() as s1:
        found = (await owner.granted(s1, params))["sessionScopes"]
    assert {name: scope["methods"] for name, scope in found.items()} == {
        "eip155:1": ["eth_blockNumber", "eth_chainId", "eth_syncing"],
        "eip155:137": ["eth_blockNumber"],
    }


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        case(51, ["eth_chainId", "nope"], ["eth_chainId"]),
        case(54, ["eth_chainId", "eth_chainId"], ["eth_chainId"]),
        case(56, ["eth_accounts", "eth_chainId"], ["eth_chainId"]),
    ],
)
@scenario
async def test_methods_that_are_named_are_granted_as_far_as_they_are_known(
    owner: Owner, asked: list[str], expected: list[str]
) -> None:
    async with await owner.connect() as s1:
        params = scopes(eip155_1={**M0, "methods": asked})
        found = await owner.granted(s1, params)
    assert found["sessionScopes"]["eip155:1"]["methods"] == expected


@pytest.mark.parametrize("asked", [case(52, ["nope"]), case(53, [])])
@scenario
async def test_request_without_known_methods_gets_all_in_order_and_each_is_served(
    owner: Owner, asked: list[str]
) -> None:
    async with await owner.connect() as s1:
        params = scopes(eip155_1={**M0, "methods": asked})
        found = (await owner.granted(s1, params))["sessionScopes"]["eip155:1"]
        known = [method for method in found["methods"] if method in KNOWN.split()]
        assert known == [m for m in KNOWN.split() if m in found["methods"]]
        assert found["methods"][: len(known)] == known
        assert {"eth_chainId", "eth_getStorageAt", "eth_subscribe"} <= {
            *found["methods"]
        }
        assert found["notifications"] == ["eth_subscription"]
        for method in set(found["methods"]) - OF_REAL_BLOCKS:
            try:
                await s1.invoke("eip155:1", method)
            except Exception as error:
                assert getattr(error, "code", None) == -32602, (method, error)


@pytest.mark.case(55)
@scenario
async def test_unknown_notifications_are_left_out(owner: Owner) -> None:
    named = ["accountsChanged", "eth_subscription"]
    async with await owner.connect() as s1:
        params = scopes(eip155_1={**M0, "notifications": named})
        found = await owner.granted(s1, params)
    assert found["sessionScopes"]["eip155:1"]["notifications"] == ["eth_subscription"]


@pytest.mark.case(57, 58)
@scenario
async def test_scopes_of_the_wallet_itself(owner: Owner) -> None:
    async with await owner.connect() as s1:
        asked = scopes(wallet=M0, wallet_eip155=M0, eip155_1=M0)
        found = (await owner.granted(s1, asked))["sessionScopes"]
    assert found["wallet"] == {"accounts": [], "methods": [], "notifications": []}
    assert found["wallet:eip155"]["accounts"] == [f"wallet:eip155:{A1}"]
    assert found["wallet:eip155"]["methods"] == ["wallet_addEthereumChain"]
