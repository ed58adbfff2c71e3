// The socket to the wallet, which all clients of the page share. It is opened when there is a
// token, and opened again when it is lost.

function walletSocket(wallet, store, pairing) {
  const FIRST_PAUSE = 500; // milliseconds before a lost socket is reopened; doubles each time
  const LONGEST_PAUSE = 30_000;
  const TOKEN_REVOKED = 4401; // the wallet's close code for a revoked token
  const address = `${wallet.replace("http", "ws")}/ws/dapp`;
  const calls = new Map(); // resolve functions of pending calls, by id
  const events = new EventTarget(); // "open", "lost", "revoked"; "frame" with a notification
  let lastId = 0;
  let pause = FIRST_PAUSE;
  let retry; // the timer of the next try
  let opening = null; // the promise of an open socket

  function announce(type, detail) {
    events.dispatchEvent(new CustomEvent(type, { detail }));
  }

  // Resolves when the socket is open. Rejects if it can't be opened now.
  function connected() {
    opening ??= openSocket().catch((error) => {
      opening = null;
      tryLater();
      throw error;
    });
    return opening;
  }

  async function openSocket() {
    await checkToken(); // the present token may still be valid after a failure
    if (!store.token) throw new Error("there is no token");
    const shown = store.token;
    const socket = new WebSocket(address, ["multichain.v1", `token.${shown}`]);
    socket.onmessage = (event) => receive(JSON.parse(event.data));
    const isOpen = await new Promise((resolve) => {
      socket.onopen = () => resolve(true);
      socket.onclose = () => resolve(false);
    });
    if (!isOpen) {
      await checkToken({ inAnyCase: true }); // browsers hide why it was rejected
      throw new Error("the socket could not be opened");
    }
    socket.onclose = (event) => lose(event.code, shown);
    pause = FIRST_PAUSE;
    const link = { start: (method, params) => start(socket, method, params) };
    announce("open", link);
    return link;
  }

  async function checkToken(options) {
    const shown = store.token;
    const isAccepted = await pairing.renew(options).catch(() => true);
    if (!isAccepted) forget(shown);
  }

  // The user may have connected again on another page.
  function forget(token) {
    store.reload();
    if (store.token !== token) return false;
    store.keep({ token: undefined });
    announce("revoked");
    return true;
  }

  function lose(code, shown) {
    opening = null;
    for (const answer of calls.values()) answer({ error: UNREACHABLE });
    calls.clear();
    if (code === TOKEN_REVOKED && forget(shown)) return;
    announce("lost");
    tryLater();
  }

  function tryLater() {
    if (!store.token) return;
    clearTimeout(retry);
    retry = setTimeout(connectIfPaired, pause);
    pause = Math.min(2 * pause, LONGEST_PAUSE);
  }

  function connectIfPaired() {
    if (store.token) connected().catch(() => {});
  }

  function receive(frame) {
    if (frame.id === undefined) {
      announce("frame", frame);
      return;
    }
    calls.get(frame.id)?.(frame);
    calls.delete(frame.id);
  }

  // Sends a call. Its answer has either `result` or `error`, which it also gets when the socket is
  // lost. `cancel` withdraws a request that waits for the user; it is then answered by 4001.
  function start(socket, method, params) {
    const id = ++lastId;
    const isOpen = socket.readyState === WebSocket.OPEN; // it may have been lost meanwhile
    const answer = new Promise((resolve) => {
      if (!isOpen) resolve({ error: UNREACHABLE });
      else calls.set(id, ({ result, error }) => resolve(error ? { error } : { result }));
    });
    if (isOpen) socket.send(JSON.stringify({ jsonrpc: "2.0", id, method, params }));

    function cancel() {
      const notification = { jsonrpc: "2.0", method: "$/cancelRequest", params: { id } };
      if (calls.has(id)) socket.send(JSON.stringify(notification));
    }

    return { answer, cancel };
  }

  return { connected, connectIfPaired, events };
}
