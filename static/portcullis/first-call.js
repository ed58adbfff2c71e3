// Makes a first call with the key that a page shows, and hands the key to the console. It is a key
// that was just revealed, or the shared one of the home page. The session storage keeps it for this
// tab if the console is opened.
"use strict";

const STORED = "portcullis.console"; // the name that static/docs/console.js reads

const box = document.getElementById("first-call");
const key = box.dataset.key ?? document.getElementById("secret").textContent;
const state = document.getElementById("run-state");
const shown = document.getElementById("run-response");

async function call() {
  const started = performance.now();
  state.textContent = "Waiting for the response …";
  try {
    const response = await fetch(box.dataset.path, {
      method: "POST",
      headers: { "Content-Type": "application/json", Authorization: `Bearer ${key}` },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_blockNumber", params: [] }),
      credentials: "omit",
      cache: "no-store",
      redirect: "error",
      referrerPolicy: "no-referrer",
    });
    shown.textContent = await response.text();
    shown.hidden = false;
    const credits = response.headers.get("x-credits");
    const cost = credits === null ? "" : `, ${credits} credit${credits === "1" ? "" : "s"}`;
    state.textContent = `${response.status}, ${Math.round(performance.now() - started)} ms${cost}`;
  } catch (error) {
    state.textContent = `No response: ${error.message}. Check your connection, and run the call again.`;
  }
}

document.getElementById("run").addEventListener("click", call);
document.getElementById("to-console").addEventListener("click", () => {
  const { user, network } = box.dataset;
  try {
    sessionStorage.setItem(STORED, JSON.stringify({ user, key, network, method: "eth_blockNumber" }));
  } catch {
    // The browser stores nothing. The key can be pasted there.
  }
});
box.hidden = false;
