// Announces the wallet to the page: its provider (EIP-6963), and its bridge (CAIP-294). Each is
// announced at once, and again when the page asks for wallets.

function announceWallet(wallet, provider) {
  const ICON =
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><path d="M3 15V6a5 5 0 0 1 10 0v9M8 1v14M5.5 2.5V15M10.5 2.5V15M3 7h10M3 11h10" fill="none" stroke="#0b5cad" stroke-width="1.2"/></svg>';
  const info = Object.freeze({
    uuid: crypto.randomUUID(),
    name: "Portcullis",
    icon: `data:image/svg+xml,${encodeURIComponent(ICON)}`,
    rdns: new URL(wallet).hostname.split(".").reverse().join("."),
  });
  // The same data under the name that clients expect and under the CAIP's name.
  const targets = ["caip-348", "caip341"].map((type) => ({ type, value: "window.postMessage" }));
  const params = { ...info, targets };

  function announceOn(request, event, detail) {
    const announce = () => dispatchEvent(new CustomEvent(event, { detail }));
    addEventListener(request, announce);
    announce();
  }

  announceOn(
    "eip6963:requestProvider",
    "eip6963:announceProvider",
    Object.freeze({ info, provider }),
  );
  announceOn("caip294:wallet_prompt", "caip294:wallet_announce", {
    jsonrpc: "2.0",
    id: 1,
    method: "wallet_announce",
    params,
  });
}
