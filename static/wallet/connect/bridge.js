// The bridge, which replaces MetaMask's content script: window.postMessage with one channel for
// the Multichain API, and one for EIP-1193.
//
// Source: MetaMask's multichain-api-client and connect-multichain for the format

function postMessageBridge(api, provider) {
  const MULTICHAIN = "metamask-multichain-provider";
  const ETHEREUM = "metamask-provider";
  const EXTENSIONS = ["io.metamask", "io.metamask.flask", "io.metamask.mobile"];
  const client = {};
  let isTaken = false; // whether MetaMask's extension serves its channel for EIP-1193

  // The extension's own provider uses that channel. It would take answers and events of this
  // wallet for the extension's.
  function notice({ detail }) {
    const isOther = detail?.provider !== provider;
    if (isOther && EXTENSIONS.includes(detail?.info?.rdns)) isTaken = true;
  }

  function post(name, data) {
    const frame = { jsonrpc: "2.0", ...data };
    postMessage({ target: "metamask-inpage", data: { name, data: frame } }, location.origin);
  }

  async function ethereumAnswer({ method, params }) {
    try {
      return { result: await provider.request({ method, params }) };
    } catch ({ code = -32603, message, data }) {
      return { error: { code, message, ...(data !== undefined && { data }) } };
    }
  }

  const answers = {
    [MULTICHAIN]: ({ method, params }) => api.call(client, method, params),
    [ETHEREUM]: ethereumAnswer,
  };

  async function pass({ source, origin, data }) {
    const isOurs = source === window && origin === location.origin;
    if (!isOurs || data?.target !== "metamask-contentscript") return;
    const { name, data: frame } = data.data ?? {};
    if (!Object.hasOwn(answers, name) || (isTaken && name === ETHEREUM)) return;
    if (frame?.id === undefined || typeof frame.method !== "string") return;
    post(name, { id: frame.id, ...(await answers[name](frame)) });
  }

  function report(method, params) {
    if (!isTaken) post(ETHEREUM, { method, params });
  }

  addEventListener("eip6963:announceProvider", notice);
  dispatchEvent(new Event("eip6963:requestProvider")); // the extension answers at once
  addEventListener("message", pass);
  api.listen(client, (notification) => post(MULTICHAIN, notification));
  provider.on("accountsChanged", (accounts) => report("metamask_accountsChanged", accounts));
  provider.on("chainChanged", (chainId) => {
    report("metamask_chainChanged", { chainId, networkVersion: BigInt(chainId).toString() });
  });
  provider.on("message", ({ type, data }) => report(type, data));
}
