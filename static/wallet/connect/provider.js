// The EIP-1193 provider: a thin adapter over the page's session.

function ethereumProvider({ api, socket, session, subscriptions, store, chain, isMetaMask }) {
  const client = {};
  const methods = ethereumMethods({ client, api, session, subscriptions, chain });
  const listeners = new Map(); // sets of functions, by event
  const opened = new Set(); // ids of the subscriptions that were opened here
  let isLost = false;
  let known = { accounts: methods.accounts(), scope: chain.known() };

  function emit(event, value) {
    for (const listener of [...(listeners.get(event) ?? [])]) {
      try {
        listener(value);
      } catch (error) {
        setTimeout(() => {
          throw error; // reported as the listener's own fault
        });
      }
    }
  }

  function on(event, listener) {
    if (!listeners.has(event)) listeners.set(event, new Set());
    listeners.get(event).add(listener);
    return provider;
  }

  function once(event, listener) {
    function first(value) {
      removeListener(event, first);
      listener(value);
    }
    first.listener = listener;
    return on(event, first);
  }

  function removeListener(event, listener) {
    for (const one of listeners.get(event) ?? []) {
      if (one === listener || one.listener === listener) listeners.get(event).delete(one);
    }
    return provider;
  }

  function removeAllListeners(event) {
    if (event === undefined) listeners.clear();
    else listeners.delete(event);
    return provider;
  }

  // Emits the changes since the last call.
  function report() {
    const before = known;
    known = { accounts: methods.accounts(), scope: chain.known() };
    if (before.scope && known.scope !== before.scope) {
      emit("chainChanged", hexChainId(known.scope));
    }
    if (String(known.accounts) !== String(before.accounts)) emit("accountsChanged", known.accounts);
  }

  function checked(args) {
    const { method, params } = args ?? {};
    if (typeof args !== "object" || Array.isArray(args) || args === null) {
      return invalidRequest("Expected a single, non-array, object argument.");
    }
    if (typeof method !== "string" || !method) {
      return invalidRequest("'args.method' must be a non-empty string.");
    }
    if (params !== undefined && (typeof params !== "object" || params === null)) {
      return invalidRequest("'args.params' must be an object or array if provided.");
    }
    return null;
  }

  async function request(args) {
    const fault = checked(args);
    if (fault) throw new ProviderRpcError(fault);
    const result = await methods.request(args.method, args.params);
    if (args.method === "eth_subscribe") opened.add(result);
    if (args.method === "eth_unsubscribe") opened.delete(args.params[0]);
    report();
    return result;
  }

  session.onChange(report);
  store.onChange(report);
  socket.events.addEventListener("open", () => {
    isLost = false;
    const scope = chain.known();
    if (scope) emit("connect", { chainId: hexChainId(scope) });
  });
  // 1013 (try again later) is MetaMask's code for a connection that is being opened again.
  socket.events.addEventListener("lost", () => {
    isLost = true;
    emit("disconnect", new ProviderRpcError({ code: 1013, message: "Disconnected. Connecting…" }));
  });
  socket.events.addEventListener("revoked", () => {
    isLost = false; // the user can be asked for a new connection
    emit("disconnect", new ProviderRpcError({ code: 4900, message: "Disconnected." }));
  });
  api.listen(client, ({ method, params: { notification } }) => {
    if (method !== "wallet_notify" || !opened.has(notification.params.subscription)) return;
    emit("message", { type: notification.method, data: notification.params });
  });

  const provider = {
    request,
    on,
    once,
    removeListener,
    removeAllListeners,
    addListener: on,
    off: removeListener,
    isConnected: () => !isLost,
    ...(isMetaMask && { isMetaMask }),
  };
  return provider;
}
