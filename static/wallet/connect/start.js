// Puts the parts together, as the attributes of the script's element say.

const { src, dataset } = document.currentScript;
const wallet = new URL(src).origin;

const store = pageStore(wallet);
const windows = walletWindow(wallet);
const pairing = pagePairing(wallet, store, windows);
const socket = walletSocket(wallet, store, pairing);
const session = knownSession(store, socket);
const subscriptions = renewedSubscriptions(socket, session);
const api = multichainApi({ store, windows, pairing, socket, session, subscriptions });
const chain = dappChain(wallet, store, session);
const parts = { api, socket, session, subscriptions, store, chain };
const provider = ethereumProvider({ ...parts, isMetaMask: dataset.ethereum === "metamask" });

if (!isSecureContext) console.warn("portcullis: wallets connect to https pages only");
else if (dataset.bridge !== "off") {
  postMessageBridge(api, provider);
  announceWallet(wallet, provider);
}
// For dapps that look for a wallet nowhere else. Other wallets may have set it already.
if ("ethereum" in dataset) window.ethereum ??= provider;

socket.connectIfPaired();
store.onChange(socket.connectIfPaired); // another page may have paired this origin
globalThis.portcullis = Object.freeze({
  wallet,
  provider,
  transport: () => multichainTransport(api),
});
