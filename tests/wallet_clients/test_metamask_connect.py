"""MetaMask's SDKs in Chromium, which find this wallet as docs/connect.md says.

`@metamask/connect-multichain` and `@metamask/connect-evm` look for an EIP-6963 provider
with MetaMask's own identifier. The wallet has its own; a page that announces MetaMask's
besides, as these tests do, shows that the bridge serves both of the SDKs' channels.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import BrowserContext

from tests.support.browser import needs_chromium, until
from tests.support.live import Live
from tests.support.signing import signer_of
from tests.support.sites import running_site
from tests.wallet_clients.bundles import site
from tests.wallet_clients.conftest import approve, sign
from tests.wallet_clients.test_evm_libraries import Evm

pytestmark = needs_chromium

AS_METAMASK = """<script>
    addEventListener("eip6963:requestProvider", () => {
        const info = { uuid: crypto.randomUUID(), name: "MetaMask", icon: "data:,",
                       rdns: "io.metamask" };
        const detail = Object.freeze({ info, provider: portcullis.provider });
        dispatchEvent(new CustomEvent("eip6963:announceProvider", { detail }));
    });
</script>"""

OPTIONS = """{
    dapp: { name: "Dapp", url: location.href },
    analytics: { enabled: false },
    ui: { headless: true },
    api: { supportedNetworks: NETWORKS },
}"""

MULTICHAIN = OPTIONS.replace("NETWORKS", '{ "eip155:1": "https://none.invalid" }')
EVM = OPTIONS.replace("NETWORKS", '{ "0x1": "https://none.invalid" }')


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return tmp_path_factory.mktemp("metamask")


def script(live: Live) -> str:
    return f'<script src="{live.base_url}/static/wallet/connect.js"></script>'


@pytest.fixture(scope="module")
def honest(live: Live, folder: Any) -> Iterator[str]:
    """Serve the dapp with the unchanged wallet."""
    with running_site(site("metamask", folder, script(live))) as port:
        yield f"http://localhost:{port}"


@pytest.fixture(scope="module")
def faked(live: Live, folder: Any) -> Iterator[str]:
    """Serve the dapp on a page that also announces MetaMask's identifier."""
    both = script(live) + AS_METAMASK
    with running_site(site("metamask", folder, both)) as port:
        yield f"http://localhost:{port}"


def test_connect_multichain_looks_for_metamasks_identifier(
    context: BrowserContext, honest: str
):
    """Without this identifier, the SDK connects to MetaMask's mobile application by a link."""
    dapp = Evm(context, honest)
    linked = f"""
        const client = await page.multichain.createMultichainClient({MULTICHAIN});
        return new Promise((resolve) => {{
            client.on("display_uri", (uri) => resolve(uri.split(":")[0]));
            client.connect(["eip155:1"], []).catch((error) => resolve(error.message));
        }});
    """
    found = dapp.run(linked)
    assert "metamask" in found.lower() or "websocket" in found.lower(), found
    assert context.pages == [dapp.page]


def test_connect_multichain_works_over_the_bridge(
    context: BrowserContext, faked: str, signer: str
):
    dapp = Evm(context, faked)
    connected = f"""
        window.client = await page.multichain.createMultichainClient({MULTICHAIN});
        await client.connect(["eip155:1"], []);
        const {{ sessionScopes }} = await client.provider.getSession();
        return sessionScopes["eip155:1"].accounts;
    """
    assert dapp.asking(connected, approve) == [f"eip155:1:{signer}"]
    params = f'["0x48656c6c6f", "{signer}"]'
    signing = f"""return client.invokeMethod({{ scope: "eip155:1",
        request: {{ method: "personal_sign", params: {params} }} }})"""
    assert signer_of(b"Hello", dapp.asking(signing, sign)) == signer
    dapp.run("await client.disconnect()")
    accounts = "return portcullis.provider.request({ method: 'eth_accounts' })"
    assert dapp.run(accounts) == []


def test_connect_evm_works_over_the_bridge(
    context: BrowserContext, faked: str, signer: str
):
    """Accounts and chains use the channel of the EIP-1193 provider."""
    dapp = Evm(context, faked)
    connected = f"""
        window.client = await page.evm.createEVMClient({EVM});
        const {{ accounts, chainId }} = await client.connect({{ chainIds: ["0x1"] }});
        window.provider = client.getProvider();
        return [accounts, chainId];
    """
    assert dapp.asking(connected, approve) == [[signer], "0x1"]
    signing = f"""return provider.request({{
        method: "personal_sign", params: ["0x48656c6c6f", "{signer}"] }})"""
    assert signer_of(b"Hello", dapp.asking(signing, sign)) == signer
    switching = """
        await provider.request({
            method: "wallet_switchEthereumChain", params: [{ chainId: "0x89" }] });
        return portcullis.provider.request({ method: "eth_chainId" });
    """
    assert dapp.asking(switching, approve) == "0x89"
    until(dapp.page, lambda: dapp.run("return provider.selectedChainId") == "0x89")
    dapp.run("await client.disconnect()")
    assert dapp.run("return provider.accounts") == []
