// Pairing: a window of the wallet sends a code to this origin, and to no other. The code and the
// PKCE verifier (RFC 7636) are exchanged for a token. Later the token is renewed.

function pagePairing(wallet, store, windows) {
  const TOKEN_AGE = 86_400_000; // milliseconds after which the wallet issues a new token
  const SETTLING = 5_000; // milliseconds until all pages of an origin see stored data
  let pairing = null; // the promise of the pairing in progress

  function random() {
    return base64url(crypto.getRandomValues(new Uint8Array(32)));
  }

  function base64url(bytes) {
    const text = btoa(String.fromCharCode(...bytes));
    return text.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  }

  function exchange(form) {
    const body = new URLSearchParams(form);
    return fetch(`${wallet}/wallet/token`, { method: "POST", credentials: "omit", body });
  }

  function pair() {
    if (pairing) windows.focus(); // the user may have lost sight of it
    pairing ??= askUser().finally(() => {
      pairing = null;
    });
    return pairing;
  }

  async function askUser() {
    if (!isSecureContext) throw new Error("the page is not a secure context");
    const opened = windows.show("about:blank"); // at once, because browsers require a click
    if (!opened) throw new Error("the browser blocked the window");
    const [verifier, state] = [random(), random()];
    const hashed = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier));
    const asked = new URLSearchParams({
      origin: location.origin,
      code_challenge: base64url(new Uint8Array(hashed)),
      state,
    });
    opened.location.href = `${wallet}/wallet/connect?${asked}`;
    const code = await answerFrom(opened, state);
    const response = await exchange({ code, code_verifier: verifier });
    if (!response.ok) throw new Error("the wallet returned no token");
    const { token } = await response.json();
    store.keep({ token, tokenSince: Date.now(), session: undefined });
  }

  function answerFrom(opened, state) {
    return new Promise((resolve, reject) => {
      // Its last message may still arrive when the window is closed.
      const unwatch = windows.watch(() => setTimeout(finish, 500, ""));

      function hear({ origin, source, data }) {
        const isAnswer = origin === wallet && source === opened;
        if (isAnswer && data?.type === "portcullis:answer" && data.state === state) {
          finish(data.code);
        }
      }

      function finish(code) {
        unwatch();
        removeEventListener("message", hear);
        if (code) resolve(code);
        else reject(new Error("the user rejected the connection"));
      }

      addEventListener("message", hear);
    });
  }

  // One page of this origin at a time renews the token, because a token is valid until its
  // successor is used. Returns false if the wallet no longer accepts the token.
  function renew({ inAnyCase = false } = {}) {
    return navigator.locks.request(store.lock, async () => {
      store.reload();
      const shown = store.token; // meanwhile another page may store a new token
      const isFresh = Date.now() - store.tokenSince < TOKEN_AGE;
      if (!shown || (isFresh && !inAnyCase)) return true;
      const response = await exchange({ token: shown });
      if (response.status === 400) return isReplaced(shown);
      if (!response.ok) return true;
      const { token } = await response.json();
      store.reload();
      if (store.token !== shown) return true; // the user has connected again on another page
      if (token !== shown || !isFresh) store.keep({ token, tokenSince: Date.now() });
      return true;
    });
  }

  // Data that another page has stored may be visible here a moment later, in spite of the lock.
  async function isReplaced(token) {
    for (let waited = 0; waited < SETTLING; waited += 50) {
      await new Promise((done) => setTimeout(done, 50));
      store.reload();
      if (store.token && store.token !== token) return true;
    }
    return false;
  }

  return { pair, renew };
}
