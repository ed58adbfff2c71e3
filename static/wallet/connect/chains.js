// The chain that the dapp uses, which the Multichain API does not have: the one that it has
// switched to last, if the session has it.

const EIP155 = "eip155:";

function hexChainId(scope) {
  return `0x${BigInt(scope.slice(EIP155.length)).toString(16)}`;
}

function dappChain(wallet, store, session) {
  let offering; // the promise of the scopes that the wallet offers

  function granted() {
    return Object.keys(session.scopes).filter((scope) => scope.startsWith(EIP155));
  }

  // Returns the scope that is known without asking the wallet, undefined if there is none.
  function known() {
    const scopes = granted();
    if (scopes.length === 0 || scopes.includes(store.chain)) return store.chain;
    return scopes[0];
  }

  // Returns the scopes that the wallet offers, with their methods. A fault is tried again.
  async function offer() {
    offering ??= fetch(`${wallet}/wallet/openrpc.json`, { credentials: "omit" })
      .then((response) => response.json())
      .then((document) => document["x-scopes"]);
    try {
      return await offering;
    } catch {
      offering = undefined;
      throw new ProviderRpcError(UNREACHABLE);
    }
  }

  async function first() {
    const found = Object.keys(await offer()).find((scope) => scope.startsWith(EIP155));
    if (found) return found;
    throw new ProviderRpcError({ code: 4901, message: "The wallet serves no network at present." });
  }

  // Before the first session it is the first chain that the wallet offers.
  async function current() {
    if (!known()) use(await first());
    return known();
  }

  // Returns the chain to ask the user for. The stored one may not be offered any more.
  async function wanted() {
    if (!known() || !(known() in (await offer()))) use(await first());
    return known();
  }

  function use(scope) {
    store.keep({ chain: scope });
  }

  // Keeps the present chain when the session loses it, so that it does not change back by itself.
  session.onChange(() => {
    const scope = known();
    if (scope && scope !== store.chain) use(scope);
  });

  return {
    current,
    known,
    offer,
    wanted,
    use,
    isGranted: (scope) => granted().includes(scope),
  };
}
