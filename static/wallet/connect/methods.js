// The methods of EIP-1193 that are answered here, with the session and the dapp's chain. All
// others are calls on that chain.
//
// Source: EIP-1102, 1193, 2255, 3085, 3326; MetaMask's JSON-RPC API for codes and messages

function ethereumMethods({ client, api, session, subscriptions, chain }) {
  const EVERYTHING = { methods: [], notifications: [] }; // dapps of EIP-1193 name no methods
  const OWN = "wallet:eip155";
  const CHAIN_ID = /^0x[1-9a-f][0-9a-f]{0,13}$/i;

  function accounts() {
    const scope = chain.known();
    const found = scope && session.scopes[scope];
    return (found?.accounts ?? []).map((account) => account.slice(account.lastIndexOf(":") + 1));
  }

  async function called(method, params) {
    const { result, error } = await api.call(client, method, params);
    if (error) throw new ProviderRpcError(error);
    return result;
  }

  // Asks the user for the chain that the dapp uses, and for what the session has already.
  async function connect() {
    const params = chain.wanted().then((scope) => ({
      optionalScopes: { [scope]: EVERYTHING, [OWN]: EVERYTHING },
    }));
    params.catch(() => {}); // it is not read if the user rejects before
    await called("wallet_createSession", params);
    if (accounts().length === 0) throw new ProviderRpcError(REJECTED);
  }

  async function requestAccounts() {
    if (accounts().length === 0) await connect();
    return accounts();
  }

  async function requestPermissions(params) {
    checkPermissions(params);
    await connect();
    return getPermissions();
  }

  function getPermissions() {
    return permissionsOf(accounts(), session.scopes, Date.now());
  }

  async function revokePermissions(params) {
    checkPermissions(params);
    await called("wallet_revokeSession");
    return null;
  }

  function chainScope(params) {
    const chainId = params?.[0]?.chainId;
    if (typeof chainId === "string" && CHAIN_ID.test(chainId)) return EIP155 + BigInt(chainId);
    const fault = "Expected 0x-prefixed, unpadded, non-zero hexadecimal string 'chainId'.";
    throw new ProviderRpcError(invalidParams(fault));
  }

  async function switchChain(params) {
    const scope = chainScope(params);
    const message =
      `Unrecognized chain ID "${hexChainId(scope)}". ` +
      "Try adding the chain using wallet_addEthereumChain first.";
    return use(scope, { code: 4902, message });
  }

  async function addChain(params) {
    const scope = chainScope(params);
    return use(scope, invalidParams("This wallet does not serve that chain."));
  }

  // Makes a chain the dapp's, after the user has added it to the session.
  async function use(scope, fault) {
    if (!chain.isGranted(scope)) {
      if (!(scope in (await chain.offer()))) throw new ProviderRpcError(fault);
      if (accounts().length > 0) await addToSession(scope);
    }
    chain.use(scope);
    return null;
  }

  async function addToSession(scope) {
    if (session.scopes[OWN]?.methods.includes("wallet_addEthereumChain")) {
      const request = {
        method: "wallet_addEthereumChain",
        params: [{ chainId: hexChainId(scope) }],
      };
      await called("wallet_invokeMethod", { scope: OWN, request });
      if (!chain.isGranted(scope)) await api.refresh(); // its event is on its way
    } else {
      await called("wallet_createSession", { optionalScopes: { [scope]: EVERYTHING } });
    }
    if (!chain.isGranted(scope)) throw new ProviderRpcError(REJECTED);
  }

  // Calls a method of the dapp's chain. A subscription ends on the chain where it was opened.
  async function invoke(method, params) {
    const opened = method === "eth_unsubscribe" && subscriptions.scopeOf(params?.[0]);
    const scope = opened || (await chain.current());
    const request = params === undefined ? { method } : { method, params };
    try {
      return await called("wallet_invokeMethod", { scope, request });
    } catch (error) {
      throw error.code === UNAUTHORIZED.code ? await refusal(error, scope, method) : error;
    }
  }

  // A method that the wallet does not have at all can't be authorized.
  async function refusal(error, scope, method) {
    if (session.scopes[scope]?.methods.includes(method)) return error;
    const offer = await chain.offer().catch(() => ({}));
    const isServed = !offer[scope] || offer[scope].methods.includes(method);
    return isServed ? error : new ProviderRpcError(noSuchMethod(method));
  }

  async function chainId() {
    return hexChainId(await chain.current());
  }

  async function networkVersion() {
    return (await chain.current()).slice(EIP155.length);
  }

  async function providerState() {
    return {
      accounts: accounts(),
      chainId: await chainId(),
      networkVersion: await networkVersion(),
      isUnlocked: true,
    };
  }

  const own = {
    eth_accounts: accounts,
    eth_chainId: chainId,
    eth_coinbase: () => accounts()[0] ?? null,
    eth_requestAccounts: requestAccounts,
    metamask_getProviderState: providerState,
    net_version: networkVersion,
    wallet_addEthereumChain: addChain,
    wallet_getPermissions: getPermissions,
    wallet_requestPermissions: requestPermissions,
    wallet_revokePermissions: revokePermissions,
    wallet_switchEthereumChain: switchChain,
  };

  async function request(method, params) {
    return Object.hasOwn(own, method) ? own[method](params) : invoke(method, params);
  }

  return { accounts, request };
}
