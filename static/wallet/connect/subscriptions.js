// The page's subscriptions. The wallet's end with their socket, so they are renewed on the next
// one. The page keeps the ids that it knows; events that were missed are not sent again.

function renewedSubscriptions(socket, session) {
  const known = new Map(); // by the page's id: scope, params, and the wallet's present id
  const pageIds = new Map(); // the page's ids by the wallet's present ids
  const listeners = new Set(); // called with each notification, in the page's ids
  let renewal = Promise.resolve(); // resolves when no renewal is in progress

  function add(pageId, id, scope, params) {
    known.set(pageId, { id, scope, params });
    pageIds.set(id, pageId);
  }

  function remove(pageId) {
    pageIds.delete(known.get(pageId)?.id);
    known.delete(pageId);
  }

  function notify(frame) {
    for (const listener of [...listeners]) listener(frame);
  }

  async function renew(link) {
    const before = [...known];
    pageIds.clear();
    await Promise.all(before.map((entry) => renewOne(link, ...entry)));
  }

  async function renewOne(link, pageId, { scope, params }) {
    const request = { method: "eth_subscribe", params };
    const { result, error } = await link.start("wallet_invokeMethod", { scope, request }).answer;
    if (error) fail(pageId, scope, error);
    else add(pageId, result, scope, params);
  }

  // The page gets a notification with an error in place of a result, as jsonrpsee sends it. A
  // subscription that the session no longer allows ends without one, as on an open socket.
  function fail(pageId, scope, error) {
    if (error.code === UNREACHABLE.code) return; // the next socket tries again
    remove(pageId);
    if (error.code === UNAUTHORIZED.code) return;
    const notification = { method: "eth_subscription", params: { subscription: pageId, error } };
    notify({ jsonrpc: "2.0", method: "wallet_notify", params: { scope, notification } });
  }

  // Returns the parameters of a wallet_invokeMethod as the wallet has to get them.
  async function outgoing(params) {
    if (params?.request?.method !== "eth_unsubscribe") return params;
    await renewal;
    const found = known.get(params.request.params?.[0]);
    return found ? { ...params, request: { ...params.request, params: [found.id] } } : params;
  }

  // Records the subscription that an answered wallet_invokeMethod has opened or ended.
  function answered(params, { result }) {
    if (!result) return;
    const { scope, request } = params;
    if (request.method === "eth_subscribe") add(result, result, scope, request.params);
    if (request.method === "eth_unsubscribe") remove(request.params[0]);
  }

  function isAllowed({ scope }, scopes) {
    const granted = scopes[scope];
    return granted?.methods.includes("eth_subscribe") && granted.notifications.length > 0;
  }

  session.onChange(({ sessionScopes }) => {
    for (const [pageId, one] of [...known]) if (!isAllowed(one, sessionScopes)) remove(pageId);
  });
  socket.events.addEventListener("open", ({ detail }) => {
    renewal = renew(detail);
  });
  socket.events.addEventListener("frame", ({ detail: frame }) => {
    if (frame.method !== "wallet_notify") return;
    const { scope, notification } = frame.params;
    const { subscription, ...rest } = notification.params;
    const params = { subscription: pageIds.get(subscription) ?? subscription, ...rest };
    notify({ ...frame, params: { scope, notification: { ...notification, params } } });
  });

  return {
    outgoing,
    answered,
    scopeOf: (pageId) => known.get(pageId)?.scope,
    onNotification(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}
