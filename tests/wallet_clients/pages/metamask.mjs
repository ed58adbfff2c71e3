// MetaMask's SDKs, as a dapp bundles them; tests call them in the page.
import * as evm from "@metamask/connect-evm";
import * as multichain from "@metamask/connect-multichain";

window.clients = { evm, multichain };
