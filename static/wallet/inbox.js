// Keeps the inbox up to date while somebody looks at it: asks for the page again, and takes
// over the list when it is another one. Without this script the page reloads itself.
"use strict";

const INTERVAL = 2000; // milliseconds between two looks

const list = document.getElementById("requests");
let shown = list.innerHTML;

async function look() {
  const response = await fetch(location.href, { redirect: "error" });
  if (!response.ok) return;
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  const found = page.getElementById("requests").innerHTML;
  if (found === shown) return; // what has the focus keeps it
  shown = found;
  list.replaceChildren(...page.getElementById("requests").childNodes);
  document.title = page.title;
}

async function keepLooking() {
  if (!document.hidden) {
    try {
      await look();
      list.removeAttribute("data-stale");
    } catch {
      list.setAttribute("data-stale", ""); // logged out, or the service is away
    }
  }
  setTimeout(keepLooking, INTERVAL);
}

setTimeout(keepLooking, INTERVAL);
