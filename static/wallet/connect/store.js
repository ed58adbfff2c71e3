// Stored data, which the pages of an origin share: the token, the session as last received, and
// the chain that the dapp uses. They have separate keys, because a page that stores a session may
// not see yet that another page has renewed the token.

function pageStore(wallet) {
  const TOKEN = `portcullis:${wallet}`;
  const SESSION = `${TOKEN}:session`;
  const CHAIN = `${TOKEN}:chain`;
  const listeners = new Set(); // called after another page has stored something
  let kept = read() ?? {};

  function read() {
    try {
      const credential = JSON.parse(localStorage.getItem(TOKEN));
      const session = JSON.parse(localStorage.getItem(SESSION)) ?? undefined;
      const chain = localStorage.getItem(CHAIN) ?? undefined;
      return { ...credential, session, chain };
    } catch {
      return null; // foreign data, or the storage is disabled
    }
  }

  function keep(changes) {
    kept = { ...(read() ?? kept), ...changes };
    const { session, chain, ...credential } = kept;
    try {
      if ("token" in changes) localStorage.setItem(TOKEN, JSON.stringify(credential));
      if ("session" in changes) localStorage.setItem(SESSION, JSON.stringify(session ?? null));
      if (changes.chain) localStorage.setItem(CHAIN, chain);
    } catch {
      // then it is kept in memory only
    }
  }

  addEventListener("storage", (event) => {
    if (event.key && ![TOKEN, SESSION, CHAIN].includes(event.key)) return;
    kept = read() ?? {};
    for (const listener of listeners) listener();
  });

  return {
    lock: TOKEN, // the name of the Web Lock for renewals of the token
    get token() {
      return kept.token;
    },
    get tokenSince() {
      return kept.tokenSince ?? 0;
    },
    get session() {
      return kept.token ? kept.session : undefined;
    },
    get chain() {
      return kept.chain;
    },
    keep,
    reload() {
      kept = read() ?? kept; // another page may have stored data since
    },
    onChange(listener) {
      listeners.add(listener);
    },
  };
}
