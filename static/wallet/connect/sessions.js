// The session as last received. wallet_getSession returns it at once, for clients that wait no
// longer than 200 ms; events of the socket keep it up to date.

const NO_SESSION = { sessionScopes: {}, sessionProperties: {} };

function knownSession(store, socket) {
  const listeners = new Set(); // called after each change with the client that has made it
  let reported = scopesOf(store.session); // the scopes that the listeners know

  function scopesOf(session) {
    return JSON.stringify((session ?? NO_SESSION).sessionScopes);
  }

  // Stores a session and reports it if its scopes are new.
  // source: the client whose call was answered with the session; it is not told again.
  function take(session, source) {
    store.keep({ session });
    if (reported === scopesOf(session)) return;
    reported = scopesOf(session);
    for (const listener of [...listeners]) listener(session, source);
  }

  // Missed events are not repeated, so the session is requested after each opening.
  async function refresh(link, source) {
    const { result } = await link.start("wallet_getSession").answer;
    if (result) take(result, source);
  }

  socket.events.addEventListener("open", ({ detail }) => refresh(detail));
  socket.events.addEventListener("revoked", () => take(NO_SESSION));
  socket.events.addEventListener("frame", ({ detail }) => {
    if (detail.method !== "wallet_sessionChanged") return;
    const { sessionScopes } = detail.params;
    const isOver = Object.keys(sessionScopes).length === 0;
    const { sessionProperties } = isOver ? NO_SESSION : (store.session ?? NO_SESSION);
    take({ sessionScopes, sessionProperties });
  });

  store.onChange(() => {
    if (!store.token) take(NO_SESSION); // another page has learned that it was revoked
  });

  return {
    take,
    refresh,
    get scopes() {
      return (store.session ?? NO_SESSION).sessionScopes;
    },
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}
