// Keeps the inbox up to date: looks when the wallet says so over a socket, and every now and
// then while there is none. To look is to ask for the page again, and to take over the list
// when it is another one. Without this script the page reloads itself.
//
// `?of=<origin>` is of a window that a dapp has opened: what that asks for takes its place. With
// `&done` it was decided and nothing else is asked: the window closes, unless there is a fault to
// be read; then it is an inbox like any other.
"use strict";

const INTERVAL = 2000; // milliseconds between two looks while there is no socket
const FIRST_PAUSE = 1000; // milliseconds before a lost socket is opened again, then twice …
const LONGEST_PAUSE = 30_000;

const list = document.getElementById("requests");
if (new URLSearchParams(location.search).has("done")) {
  if (!document.querySelector(".notice.error:not(.stale)")) close();
  history.replaceState(null, "", location.pathname);
}
const isLed = new URLSearchParams(location.search).has("of");
let shown = list.innerHTML;

async function look() {
  const response = await fetch(location.href, { redirect: isLed ? "manual" : "error" });
  if (response.type === "opaqueredirect") location.reload(); // to the request, or the log-in
  if (!response.ok) return;
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  const found = page.getElementById("requests").innerHTML;
  if (found === shown) return; // what has the focus keeps it
  shown = found;
  list.replaceChildren(...page.getElementById("requests").childNodes);
  document.title = page.title;
}

let isLooking = false;
let isDue = false;

// One look after the other: what is said during one is seen by the next.
async function lookSoon() {
  isDue = true;
  if (isLooking) return;
  isLooking = true;
  while (isDue) {
    isDue = false;
    try {
      await look();
      list.removeAttribute("data-stale");
    } catch {
      list.setAttribute("data-stale", ""); // logged out, or the service is away
    }
  }
  isLooking = false;
}

let hasSocket = false;
let pause = FIRST_PAUSE;

function connect() {
  const address = new URL("/ws/ui", location.href);
  const socket = new WebSocket(address.href.replace("http", "ws"));
  socket.onopen = () => {
    hasSocket = true;
    pause = FIRST_PAUSE;
  };
  socket.onmessage = lookSoon;
  socket.onclose = () => {
    if (hasSocket) lookSoon(); // it tells whether the list can still be trusted
    hasSocket = false;
    setTimeout(connect, pause);
    pause = Math.min(2 * pause, LONGEST_PAUSE);
  };
}

setInterval(() => {
  if (!hasSocket && !document.hidden) lookSoon();
}, INTERVAL);
connect();
