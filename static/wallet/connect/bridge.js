// The bridge, which replaces MetaMask's content script: window.postMessage with one channel for
// the Multichain API, and one for EIP-1193.
//
// Source: MetaMask's multichain-api-client and connect-multichain for the format

function postMessageBridge(api, provider) {
  const MULTICHAIN = "metamask-multichain-provider";
  const ETHEREUM = "metamask-provider";
  const client = {};

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
    if (!Object.hasOwn(answers, name)) return;
    if (frame?.id === undefined || typeof frame.method !== "string") return;
    post(name, { id: frame.id, ...(await answers[name](frame)) });
  }

  addEventListener("message", pass);
  api.listen(client, (notification) => post(MULTICHAIN, notification));
  provider.on("accountsChanged", (accounts) => {
    post(ETHEREUM, { method: "metamask_accountsChanged", params: accounts });
  });
  provider.on("chainChanged", (chainId) => {
    const params = { chainId, networkVersion: BigInt(chainId).toString() };
    post(ETHEREUM, { method: "metamask_chainChanged", params });
  });
  provider.on("message", ({ type, data }) => post(ETHEREUM, { method: type, params: data }));
}
