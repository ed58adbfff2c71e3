"""wagmi, viem and ethers in Chromium, with the wallet's EIP-1193 provider."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page

from tests.support.browser import needs_chromium, until
from tests.support.live import Live
from tests.support.signing import signer_of
from tests.support.sites import running_site
from tests.support.wallet import A1
from tests.wallet_clients.bundles import site
from tests.wallet_clients.conftest import Mainnet, approve, sign

pytestmark = needs_chromium

DEFINE = """async ([name, body]) => {
    const run = new Function("page", `return (async () => { ${body} })()`);
    window[name] = run(window.clients);
}"""

CONNECTED = """
    const { wagmi, chains } = page;
    const { mainnet, polygon } = chains;
    const transports = { 1: wagmi.unstable_connector(wagmi.injected),
                         137: wagmi.unstable_connector(wagmi.injected) };
    const config = wagmi.createConfig({ chains: [mainnet, polygon], transports });
    window.config = config;
    const connector = config.connectors.find(({ name }) => name === "Portcullis");
    window.changes = [];
    wagmi.watchConnection(config, { onChange: ({ addresses, chainId, status }) =>
        changes.push([status, addresses ?? [], chainId ?? null]) });
    const { accounts, chainId } = await wagmi.connect(config, { connector });
    return [connector.id, accounts.map((one) => one.toLowerCase()), chainId];
"""


@pytest.fixture(scope="module")
def origin(live: Live, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve the dapp."""
    script = f'<script src="{live.base_url}/static/wallet/connect.js"></script>'
    with running_site(site("evm", tmp_path_factory.mktemp("evm"), script)) as port:
        yield f"http://localhost:{port}"


class Evm:
    """The dapp's page. Its code has the libraries as `page`."""

    def __init__(self, context: BrowserContext, origin: str) -> None:
        self._context = context
        self.page: Page = context.new_page()
        self.page.goto(origin)

    def run(self, body: str) -> Any:
        """Run an async function with this body, and return its result."""
        self.page.evaluate(DEFINE, ["found", body])
        return self.page.evaluate("found")

    def asking(self, body: str, decide: Callable[[Page], None]) -> Any:
        """Run a function that causes a request, decide it as the user, and return the result."""
        button = (
            "([name, body]) => { document.querySelector('button').onclick ="
            " () => { const run = new Function('page',"
            " `return (async () => { ${body} })()`); window[name] = run(clients); } }"
        )
        self.page.evaluate(button, ["found", body])
        with self._context.expect_page() as opened:
            self.page.get_by_role("button", name="Connect").click()
        decide(opened.value)
        found = self.page.evaluate("found")
        until(self.page, lambda: self._context.pages == [self.page])
        return found


@pytest.fixture
def evm(context: BrowserContext, origin: str) -> Evm:
    return Evm(context, origin)


def test_wagmi_connects_signs_sends_switches_and_disconnects(
    evm: Evm, signer: str, mainnet: Mainnet
):
    connected = evm.asking(CONNECTED, approve)
    assert connected == ["1.0.0.127", [signer], 1]
    signature = evm.asking(
        'return page.wagmi.signMessage(config, { message: "Hello" })', sign
    )
    assert signer_of(b"Hello", signature) == signer
    typed = """
        const types = { Mail: [{ name: "contents", type: "string" }] };
        const domain = { name: "Mail", chainId: 1 }, message = { contents: "Hi" };
        const given = { types, domain, message, primaryType: "Mail" };
        const signature = await page.wagmi.signTypedData(config, given);
        const from = { ...given, signature };
        return (await page.viem.recoverTypedDataAddress(from)).toLowerCase();
    """
    assert evm.asking(typed, sign) == signer
    sending = f'return page.wagmi.sendTransaction(config, {{ to: "{A1}", value: 1n }})'
    sent = evm.asking(sending, sign)
    found = f'return (await page.wagmi.getTransaction(config, {{ hash: "{sent}" }})).to'
    assert evm.run(found) == A1
    assert evm.run("return String(await page.wagmi.getBlockNumber(config))") == str(
        mainnet.grow() - 1
    )
    switch = "return (await page.wagmi.switchChain(config, { chainId: 137 })).id"
    assert evm.asking(switch, approve) == 137
    assert evm.run("return page.wagmi.getChainId(config)") == 137
    evm.run("await page.wagmi.disconnect(config)")
    assert evm.run("return page.wagmi.getConnection(config).status") == "disconnected"
    accounts = "return portcullis.provider.request({ method: 'eth_accounts' })"
    assert evm.run(accounts) == []
    changes = evm.page.evaluate("changes")
    assert [chain for *_, chain in changes if chain not in (1, None)][:1] == [137]


def test_wagmi_reconnects_after_the_page_is_loaded_again(evm: Evm, signer: str):
    evm.asking(CONNECTED, approve)
    evm.page.reload()
    again = """
        const { wagmi, chains } = page;
        const config = wagmi.createConfig({
            chains: [chains.mainnet], transports: { 1: wagmi.http("/none") } });
        const [{ accounts, chainId }] = await wagmi.reconnect(config);
        return [accounts.map((one) => one.toLowerCase()), chainId];
    """
    assert evm.run(again) == [[signer], 1]


def test_ethers_discovers_the_wallet_signs_and_listens(
    evm: Evm, signer: str, mainnet: Mainnet
):
    found = """
        window.provider = await page.ethers.BrowserProvider.discover({ timeout: 500 });
        window.signer = await provider.getSigner();
        return [(await provider.getNetwork()).chainId.toString(), signer.address];
    """
    chain, address = evm.asking(found, approve)
    assert (chain, address.lower()) == ("1", signer)
    signature = evm.asking('return signer.signMessage("Hello")', sign)
    assert signer_of(b"Hello", signature) == signer
    typed = """
        const types = { Mail: [{ name: "contents", type: "string" }] };
        const domain = { name: "Mail", chainId: 1 }, message = { contents: "Hi" };
        const signature = await signer.signTypedData(domain, types, message);
        return page.ethers.verifyTypedData(domain, types, message, signature);
    """
    assert evm.asking(typed, sign).lower() == signer
    sending = f'return (await signer.sendTransaction({{ to: "{A1}", value: 1n }})).hash'
    assert evm.asking(sending, sign).startswith("0x")
    rejected = """
        return signer.signMessage("no").catch(({ code, info }) => [code, info.error.code]);
    """
    rejected = evm.asking(
        rejected,
        lambda window: window.get_by_role("button", name="Reject", exact=True).click(),
    )
    assert rejected == ["ACTION_REJECTED", 4001]
    evm.run("window.heads = []; provider.on('block', (number) => heads.push(number))")
    number = mainnet.grow()
    until(evm.page, lambda: number in evm.page.evaluate("heads"))


def test_viem_works_over_the_announced_provider(
    evm: Evm, signer: str, mainnet: Mainnet
):
    connected = """
        const { createWalletClient, custom, publicActions } = page.viem;
        const wallets = [];
        addEventListener("eip6963:announceProvider", ({ detail }) => wallets.push(detail));
        dispatchEvent(new Event("eip6963:requestProvider"));
        const { provider } = wallets.find(({ info }) => info.name === "Portcullis");
        window.client = createWalletClient({
            chain: page.chains.mainnet, transport: custom(provider) })
            .extend(publicActions);
        return (await client.requestAddresses()).map((one) => one.toLowerCase());
    """
    assert evm.asking(connected, approve) == [signer]
    balance = f'return String(await client.getBalance({{ address: "{signer}" }}))'
    assert evm.run(balance) == str(10**21)
    (permission, _) = evm.run("return client.getPermissions()")
    assert permission["parentCapability"] == "eth_accounts"
    signing = (
        f"""return client.signMessage({{ account: "{signer}", message: "Hello" }})"""
    )
    assert signer_of(b"Hello", evm.asking(signing, sign)) == signer
    unserved = """return client.switchChain({ id: 5 }).catch(({ name, code }) => [name, code])"""
    assert evm.run(unserved) == ["SwitchChainError", 4902]
    unknown = """
        return client.request({ method: "wallet_sendCalls", params: [{}] })
            .catch(({ name, code }) => [name, code]);
    """
    assert evm.run(unknown) == ["MethodNotFoundRpcError", -32601]
