// The Multichain API (CAIP-25, 27, 285, 312): calls and notifications of the page's clients,
// which share the socket. A client is any object; it identifies the caller.

function multichainApi({ store, windows, pairing, socket, session, subscriptions }) {
  const GIVEN_UP = 30_000; // milliseconds after which dapps written for MetaMask ignore a response
  const CONFIRMED = [
    "personal_sign",
    "eth_signTypedData_v4",
    "eth_sendTransaction",
    "wallet_addEthereumChain",
  ]; // methods that wait for the user
  // Errors after which the window stays, because it can show the request.
  const SHOWN = [REJECTED.code, UNREACHABLE.code, ALREADY_PENDING];

  // Returns an object with either `result` or `error`.
  // params: may be a promise for wallet_createSession, whose window is opened at once.
  async function call(client, method, params) {
    if (method === "wallet_createSession") return createSession(client, params);
    if (!store.token) return withoutToken(method);
    if (method === "wallet_getSession" && store.session) {
      socket.connectIfPaired();
      return { result: store.session };
    }
    let link;
    try {
      link = await socket.connected();
    } catch {
      return store.token ? { error: UNREACHABLE } : withoutToken(method);
    }
    if (method === "wallet_revokeSession") return revokeSession(client, link, params);
    if (method === "wallet_invokeMethod") return invokeMethod(link, params);
    const answer = await link.start(method, params).answer;
    if (method === "wallet_getSession" && answer.result) session.take(answer.result, client);
    return answer;
  }

  function withoutToken(method) {
    if (method === "wallet_getSession") return { result: NO_SESSION };
    if (method === "wallet_revokeSession") return { result: true };
    if (method === "wallet_invokeMethod") return { error: UNAUTHORIZED };
    return { error: noSuchMethod(method) };
  }

  async function createSession(client, params) {
    const calledAt = Date.now();
    const request = userRequest(windows);
    let isAsked = true;
    try {
      const { link, error } = await connectedOrPaired(request);
      if (error) return { error };
      isAsked = false;
      const answer = await request.send(link, "wallet_createSession", await params);
      isAsked = !answer.error || SHOWN.includes(answer.error.code);
      // A client that no longer waits for the response learns of a late consent by an event.
      const isLate = Date.now() - calledAt > GIVEN_UP;
      if (answer.result) session.take(answer.result, isLate ? undefined : client);
      return answer;
    } finally {
      request.end();
      if (!isAsked) request.leave();
    }
  }

  // Before a request to the user, an invalid token is replaced by pairing in a window of its own.
  async function connectedOrPaired(request) {
    if (store.token) {
      try {
        return { link: await socket.connected() };
      } catch {
        if (store.token) return { error: UNREACHABLE };
      }
    }
    request.pairFirst();
    try {
      await pairing.pair();
    } catch {
      return { error: REJECTED };
    }
    request.watch();
    try {
      return { link: await socket.connected() };
    } catch {
      return { error: UNREACHABLE };
    }
  }

  async function revokeSession(client, link, params) {
    const answer = await link.start("wallet_revokeSession", params).answer;
    if (answer.result && params?.scopes?.length) await session.refresh(link, client);
    else if (answer.result) session.take(NO_SESSION, client);
    return answer;
  }

  async function invokeMethod(link, params) {
    const request = waitsForUser(params) ? userRequest(windows) : null;
    const sent = await subscriptions.outgoing(params);
    const answer = request
      ? await request.send(link, "wallet_invokeMethod", sent)
      : await link.start("wallet_invokeMethod", sent).answer;
    request?.end();
    subscriptions.answered(params, answer);
    return answer;
  }

  function waitsForUser(params) {
    const name = params?.request?.method;
    const granted = session.scopes[params?.scope]?.methods;
    return CONFIRMED.includes(name) && Boolean(granted?.includes(name));
  }

  // Calls `listener` with each notification for a client; returns a function that ends this.
  // A change of the session by one client is an event for all others.
  function listen(client, listener) {
    const ends = [
      session.onChange(({ sessionScopes }, source) => {
        const params = { sessionScopes };
        const event = { jsonrpc: "2.0", method: "wallet_sessionChanged", params };
        if (source !== client) listener(event);
      }),
      subscriptions.onNotification(listener),
    ];
    return () => {
      for (const end of ends) end();
    };
  }

  // Reads the session from the wallet, for changes whose event may still be on its way.
  async function refresh() {
    const link = await socket.connected();
    await session.refresh(link);
  }

  return { call, listen, refresh };
}
