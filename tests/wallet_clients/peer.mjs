// MetaMask's client over the wallet's WebSocket, controlled by lines of JSON.
//
// in: { call: <method of the client>, argument }, each after the answer to the one before
// out: { result } or { error: { name, code, message } } for each; { notification } for
//      whatever the wallet says by itself
//
// usage: WALLET_TOKEN=… node --experimental-websocket peer.mjs ws://…/ws/dapp
import { createInterface } from "node:readline";
import { getMultichainClient } from "@metamask/multichain-api-client";

function webSocketTransport(url, token) {
  const waiting = new Map();
  const listeners = new Set();
  let socket = null;
  let lastId = 0;

  function receive({ data }) {
    const frame = JSON.parse(data);
    if (frame.id === undefined) {
      for (const listener of listeners) listener(frame);
      return;
    }
    waiting.get(frame.id)?.(frame);
    waiting.delete(frame.id);
  }

  return {
    connect() {
      return new Promise((resolve, reject) => {
        socket = new WebSocket(url, ["multichain.v1", `token.${token}`]);
        socket.onopen = () => resolve();
        socket.onclose = () => reject(new Error("the socket is closed"));
        socket.onmessage = receive;
      });
    },
    async disconnect() {
      socket?.close();
    },
    isConnected() {
      return socket?.readyState === WebSocket.OPEN;
    },
    request(request) {
      return new Promise((resolve) => {
        const id = ++lastId;
        waiting.set(id, resolve);
        socket.send(JSON.stringify({ jsonrpc: "2.0", id, ...request }));
      });
    },
    onNotification(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

function say(line) {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

const transport = webSocketTransport(process.argv[2], process.env.WALLET_TOKEN);
const client = getMultichainClient({ transport });
client.onNotification((notification) => say({ notification }));

async function answer({ call, argument }) {
  try {
    return { result: (await client[call](argument)) ?? null };
  } catch ({ name, cause, message }) {
    return { error: { name, code: cause?.code, message } };
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  say(await answer(JSON.parse(line)));
}
await transport.disconnect();
