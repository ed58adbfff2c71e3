// Connects a web page with a Portcullis wallet; see docs/connect.md.
//
// A page includes it from the wallet. It then has the Multichain API in two forms: a bridge
// for dapps that were written for MetaMask (window.postMessage, announced by CAIP-294), and
// portcullis.transport() for @metamask/multichain-api-client. Both share one socket, which
// is opened when there is a token, and reopened when it is lost.
//
// Source: https://chainagnostic.org/CAIPs/caip-25, caip-294; RFC 7636; message formats as in
// MetaMask's multichain-api-client.
"use strict";

(() => {
  const WALLET = new URL(document.currentScript.src).origin;
  const STORE = `portcullis:${WALLET}`;
  const SESSION = `${STORE}:session`;
  const NOTHING = { sessionScopes: {}, sessionProperties: {} };
  const FIRST_PAUSE = 500; // milliseconds before a lost socket is reopened; doubles each time
  const LONGEST_PAUSE = 30_000;
  const TOKEN_AGE = 86_400_000; // milliseconds after which the wallet issues a new token
  const SETTLING = 5_000; // milliseconds until all pages of an origin see stored data
  const TOKEN_REVOKED = 4401; // the wallet's close code for a revoked token
  const AT_ONCE = 300; // milliseconds within which a rejected call gets its response
  const GIVEN_UP = 30_000; // milliseconds after which dapps written for MetaMask ignore a response
  const CONFIRMED = [
    "personal_sign",
    "eth_signTypedData_v4",
    "eth_sendTransaction",
    "wallet_addEthereumChain",
  ]; // methods that wait for the user

  const REJECTED = { code: 4001, message: "User rejected the request." };
  const UNAUTHORIZED = {
    code: 4100,
    message: "The requested account and/or method has not been authorized by the user.",
  };
  const UNREACHABLE = { code: 4900, message: "The wallet can't be reached." };
  const NO_SUCH_METHOD = {
    code: -32601,
    message: "The method does not exist / is not available.",
  };

  // Stored data: the token, and the session as last received. They have separate keys, because a
  // page that stores a session may not see yet that another page has renewed the token.

  let kept = read() ?? {};

  function read() {
    try {
      const credential = JSON.parse(localStorage.getItem(STORE));
      const session = JSON.parse(localStorage.getItem(SESSION)) ?? undefined;
      return credential && { ...credential, session };
    } catch {
      return null; // foreign data, or the storage is disabled
    }
  }

  function keep(changes) {
    kept = { ...(read() ?? kept), ...changes }; // other pages of this origin store data as well
    const { session, ...credential } = kept;
    try {
      if ("token" in changes) localStorage.setItem(STORE, JSON.stringify(credential));
      if ("session" in changes) localStorage.setItem(SESSION, JSON.stringify(session ?? null));
    } catch {
      // then it is kept in memory only
    }
  }

  addEventListener("storage", (event) => {
    if ([STORE, SESSION].includes(event.key)) kept = read() ?? {};
  });

  // Pairing: a window of the wallet sends a code to this origin, and to no other.

  function random() {
    return base64url(crypto.getRandomValues(new Uint8Array(32)));
  }

  function base64url(bytes) {
    const text = btoa(String.fromCharCode(...bytes));
    return text.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  }

  function openWindow(url) {
    return open(url, "portcullis", "popup,width=440,height=720");
  }

  // Opens a window with this page's requests. If the browser opens no window, because there was
  // no click before, the request stays in the user's inbox.
  function leadUser() {
    openWindow(`${WALLET}/wallet/?of=${encodeURIComponent(location.origin)}`);
  }

  async function pair() {
    if (!isSecureContext) throw new Error("the page is not secure");
    const wallet = openWindow("about:blank"); // at once, because browsers require a click
    if (!wallet) throw new Error("the browser has opened no window");
    const [verifier, state] = [random(), random()];
    const hashed = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier));
    const asked = new URLSearchParams({
      origin: location.origin,
      code_challenge: base64url(new Uint8Array(hashed)),
      state,
    });
    wallet.location.href = `${WALLET}/wallet/connect?${asked}`;
    const code = await answerFrom(wallet, state);
    const response = await exchange({ code, code_verifier: verifier });
    if (!response.ok) throw new Error("the wallet gave no token");
    const { token } = await response.json();
    keep({ token, tokenSince: Date.now(), session: undefined });
  }

  function exchange(form) {
    const body = new URLSearchParams(form);
    return fetch(`${WALLET}/wallet/token`, { method: "POST", credentials: "omit", body });
  }

  function answerFrom(wallet, state) {
    return new Promise((resolve, reject) => {
      const timer = setInterval(() => {
        if (wallet.closed) setTimeout(finish, 500, ""); // its last message may still arrive
      }, 500);

      function hear({ origin, source, data }) {
        const isAnswer = origin === WALLET && source === wallet;
        if (isAnswer && data?.type === "portcullis:answer" && data.state === state) {
          finish(data.code);
        }
      }

      function finish(code) {
        clearInterval(timer);
        removeEventListener("message", hear);
        if (code) resolve(code);
        else reject(new Error("the user did not let the page ask"));
      }

      addEventListener("message", hear);
    });
  }

  // Renewal: by one page of this origin at a time, because a token is valid until its successor is
  // used. The wallet's response also shows whether the token is valid at all.

  function renew({ inAnyCase = false } = {}) {
    return navigator.locks.request(STORE, async () => {
      kept = read() ?? kept; // another page may have renewed it already
      const shown = kept.token; // meanwhile another page may store a new token
      const isFresh = Date.now() - (kept.tokenSince ?? 0) < TOKEN_AGE;
      if (!shown || (isFresh && !inAnyCase)) return;
      const response = await exchange({ token: shown });
      if (response.status === 400 && !(await isReplaced(shown))) forget();
      if (!response.ok) return;
      const { token } = await response.json();
      if ((read() ?? kept).token !== shown) return; // the user has connected again on another page
      if (token !== shown || !isFresh) keep({ token, tokenSince: Date.now() });
    });
  }

  // Data that another page has stored may be visible here a moment later, in spite of the lock.

  async function isReplaced(token) {
    for (let waited = 0; waited < SETTLING; waited += 50) {
      await new Promise((done) => setTimeout(done, 50));
      const now = read();
      if (now?.token && now.token !== token) {
        kept = now;
        return true;
      }
    }
    return false;
  }

  function forget() {
    keep({ token: undefined });
    take(NOTHING);
  }

  // The socket, which all clients of the page share.

  const calls = new Map(); // resolve functions of pending calls, by id
  const listeners = new Set(); // called with every notification
  let lastId = 0;
  let pause = FIRST_PAUSE;
  let retry; // the timer of the next try
  let opening = null; // the promise of an open socket

  function connected() {
    opening ??= openSocket().catch((error) => {
      opening = null;
      tryLater();
      throw error;
    });
    return opening;
  }

  async function openSocket() {
    await renew().catch(() => {}); // the present token may still be valid
    if (!kept.token) throw new Error("the token is good no more");
    const shown = kept.token;
    const address = `${WALLET.replace("http", "ws")}/ws/dapp`;
    const socket = new WebSocket(address, ["multichain.v1", `token.${shown}`]);
    socket.onmessage = (event) => receive(JSON.parse(event.data));
    const isOpen = await new Promise((resolve) => {
      socket.onopen = () => resolve(true);
      socket.onclose = () => resolve(false);
    });
    if (!isOpen) {
      await renew({ inAnyCase: true }).catch(() => {}); // browsers hide why it was rejected
      throw new Error("the socket does not open");
    }
    socket.onclose = (event) => lose(event.code, shown);
    pause = FIRST_PAUSE;
    refresh(socket);
    return socket;
  }

  // Another page may receive the close first, and the user may have connected again there.

  function lose(code, shown) {
    opening = null;
    for (const answer of calls.values()) answer({ error: UNREACHABLE });
    calls.clear();
    kept = read() ?? kept;
    if (code === TOKEN_REVOKED && kept.token === shown) forget();
    else tryLater();
  }

  function tryLater() {
    if (!kept.token) return;
    clearTimeout(retry);
    retry = setTimeout(() => kept.token && connected().catch(() => {}), pause);
    pause = Math.min(2 * pause, LONGEST_PAUSE);
  }

  function receive(frame) {
    if (frame.id !== undefined) {
      calls.get(frame.id)?.(frame);
      calls.delete(frame.id);
      return;
    }
    if (frame.method === "wallet_sessionChanged") {
      const { sessionScopes } = frame.params;
      const isOver = Object.keys(sessionScopes).length === 0;
      const { sessionProperties } = isOver ? NOTHING : (kept.session ?? NOTHING);
      keep({ session: { sessionScopes, sessionProperties } });
    }
    notify(frame);
  }

  function notify(frame) {
    for (const listener of [...listeners]) listener(frame);
  }

  function send(socket, method, params) {
    return new Promise((resolve) => {
      const id = ++lastId;
      calls.set(id, ({ result, error }) => resolve(error ? { error } : { result }));
      socket.send(JSON.stringify({ jsonrpc: "2.0", id, method, params }));
    });
  }

  // Missed events are not repeated, so the session is requested after each opening.
  async function refresh(socket) {
    const { result } = await send(socket, "wallet_getSession");
    if (result) take(result);
  }

  function take(session) {
    const old = JSON.stringify((kept.session ?? NOTHING).sessionScopes);
    keep({ session });
    if (old === JSON.stringify(session.sessionScopes)) return;
    const params = { sessionScopes: session.sessionScopes };
    notify({ jsonrpc: "2.0", method: "wallet_sessionChanged", params });
  }

  // Calls: wallet_getSession returns the stored session at once, for clients that wait no longer
  // than 200 ms. Events on the socket keep it up to date.

  function withoutToken(method) {
    if (method === "wallet_getSession") return { result: NOTHING };
    if (method === "wallet_revokeSession") return { result: true };
    if (method === "wallet_invokeMethod") return { error: UNAUTHORIZED };
    return { error: NO_SUCH_METHOD };
  }

  async function call(method, params) {
    const calledAt = Date.now();
    const isCreation = method === "wallet_createSession";
    if (!kept.token && !isCreation) return withoutToken(method);
    if (method === "wallet_getSession" && kept.session) {
      connected().catch(() => {});
      return { result: kept.session };
    }
    // The time starts at the click, because browsers soon stop opening windows for it.
    let leading = isCreation && kept.token ? setTimeout(leadUser, AT_ONCE) : undefined;
    let socket;
    try {
      socket = await (isCreation ? asking(leading) : connected());
    } catch {
      clearTimeout(leading);
      return { error: kept.token ? UNREACHABLE : isCreation ? REJECTED : UNAUTHORIZED };
    }
    if (waitsForUser(method, params)) leading = setTimeout(leadUser, AT_ONCE);
    const answer = await send(socket, method, params);
    clearTimeout(leading);
    // A client that no longer waits for the response learns of a late consent by an event.
    const isLate = Date.now() - calledAt > GIVEN_UP;
    if (answer.result && isCreation) {
      if (isLate) take(answer.result);
      else keep({ session: answer.result });
    }
    if (answer.result && method === "wallet_revokeSession") keep({ session: undefined });
    return answer;
  }

  function waitsForUser(method, params) {
    const name = method === "wallet_invokeMethod" && params?.request?.method;
    const granted = kept.session?.sessionScopes[params?.scope]?.methods;
    return CONFIRMED.includes(name) && Boolean(granted?.includes(name));
  }

  // Before a request to the user, an invalid token is replaced by pairing in a window of its own.
  async function asking(leading) {
    if (kept.token) {
      try {
        return await connected();
      } catch (error) {
        if (kept.token) throw error;
      }
    }
    clearTimeout(leading);
    await pair();
    return connected();
  }

  // The transport for getMultichainClient({ transport }).

  function transport() {
    let isConnected = false;
    return {
      warmupTimeout: 1000,
      connect: async () => {
        isConnected = true;
      },
      disconnect: async () => {
        isConnected = false;
      },
      isConnected: () => isConnected,
      onNotification(listener) {
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
      async request({ method, params }, { timeout = -1 } = {}) {
        const answered = call(method, params);
        if (timeout < 0) return { jsonrpc: "2.0", id: ++lastId, ...(await answered) };
        let timer;
        const late = new Promise((_, reject) => {
          timer = setTimeout(() => reject(lateness()), timeout);
        });
        const answer = await Promise.race([answered, late]);
        clearTimeout(timer);
        return { jsonrpc: "2.0", id: ++lastId, ...answer };
      },
    };
  }

  function lateness() {
    const error = new Error("The wallet has not answered in time.");
    error.name = "TransportTimeoutError";
    return error;
  }

  // The bridge, which replaces MetaMask's content script.

  const PROVIDER = "metamask-multichain-provider";

  function post(data) {
    const message = { target: "metamask-inpage", data: { name: PROVIDER, data } };
    postMessage(message, location.origin);
  }

  async function pass({ source, origin, data }) {
    const isOurs = source === window && origin === location.origin;
    if (!isOurs || data?.target !== "metamask-contentscript") return;
    if (data.data?.name !== PROVIDER) return;
    const frame = data.data.data;
    if (frame?.id === undefined || typeof frame.method !== "string") return;
    post({ jsonrpc: "2.0", id: frame.id, ...(await call(frame.method, frame.params)) });
  }

  const NAME = "Portcullis";
  const ICON =
    "data:image/svg+xml," +
    encodeURIComponent(
      '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><path d="M3 15V6a5 5 0 0 1 10 0v9M8 1v14M5.5 2.5V15M10.5 2.5V15M3 7h10M3 11h10" fill="none" stroke="#0b5cad" stroke-width="1.2"/></svg>',
    );

  function announcer() {
    const params = {
      uuid: crypto.randomUUID(),
      name: NAME,
      icon: ICON,
      rdns: new URL(WALLET).hostname.split(".").reverse().join("."),
      // The same data under the name that clients expect and under the CAIP's name.
      targets: ["caip-348", "caip341"].map((type) => ({ type, value: "window.postMessage" })),
    };
    const detail = { jsonrpc: "2.0", id: 1, method: "wallet_announce", params };
    return () => dispatchEvent(new CustomEvent("caip294:wallet_announce", { detail }));
  }

  function bridge() {
    const announce = announcer();
    addEventListener("message", pass);
    addEventListener("caip294:wallet_prompt", announce);
    listeners.add(post);
    announce();
  }

  if (!isSecureContext) console.warn("portcullis: wallets connect to https pages only");
  else if (document.currentScript.dataset.bridge !== "off") bridge();
  if (kept.token) connected().catch(() => {});
  globalThis.portcullis = Object.freeze({ wallet: WALLET, transport });
})();
