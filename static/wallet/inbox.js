// Keeps the inbox up to date. The script fetches the page again and replaces the list when the
// wallet sends a frame over a socket, and every two seconds while there is no socket. Without
// this script the page reloads itself.
//
// A window that a dapp has opened has `?of=<origin>`: the dapp's next request replaces the page.
// `&done` means that a request was decided and no other is pending. Then the window closes,
// unless the page shows an error.
"use strict";

const INTERVAL = 2000; // milliseconds between two fetches while there is no socket
const FIRST_PAUSE = 1000; // milliseconds before a lost socket is reopened; doubles each time
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
  if (response.type === "opaqueredirect") location.reload(); // a redirect to the request or the login
  if (!response.ok) return;
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  const found = page.getElementById("requests").innerHTML;
  if (found === shown) return; // keeps the focus
  shown = found;
  list.replaceChildren(...page.getElementById("requests").childNodes);
  document.title = page.title;
}

let isLooking = false;
let isDue = false;

// Fetches are sequential: a frame that arrives during a fetch causes another one.
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
      list.setAttribute("data-stale", ""); // logged out, or the service is unavailable
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
    if (hasSocket) lookSoon(); // checks whether the list is still up to date
    hasSocket = false;
    setTimeout(connect, pause);
    pause = Math.min(2 * pause, LONGEST_PAUSE);
  };
}

setInterval(() => {
  if (!hasSocket && !document.hidden) lookSoon();
}, INTERVAL);
connect();
