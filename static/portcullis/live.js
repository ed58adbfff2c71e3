// Keeps a page up to date. The script requests the page again every few seconds and replaces the
// content of the elements with `data-live`. Rows that have not changed stay as they are, so that
// the focus and a selection stay as well. A button pauses the updates.
//
// The element #live has `data-seconds` (pause between two requests), `data-now` (the service's
// Unix time) and, optionally, `data-version` (of the page; the service answers 304 if it has not
// changed) and `data-address` (what to request in place of the page itself).
// A <time data-age="Unix seconds"> shows its age. Without this script the page reloads itself.
"use strict";

const live = document.getElementById("live");
const address = live.dataset.address ?? location.href;
const pause = 1000 * live.dataset.seconds;
let version = live.dataset.version ?? "";
let offset = Date.now() / 1000 - live.dataset.now; // of this computer's clock, in seconds
let isPaused = false;
let isLooking = false;
let lastLook = performance.now();

// The units of legible.words.age.
function age(seconds) {
  const rest = Math.max(0, Math.floor(seconds));
  for (const [unit, length] of [["d", 86400], ["h", 3600], ["min", 60]])
    if (rest >= length) return `${Math.floor(rest / length).toLocaleString("en")} ${unit}`;
  return `${rest} s`;
}

function showAges(root) {
  const now = Date.now() / 1000 - offset;
  for (const time of root.querySelectorAll("time[data-age]")) {
    const text = age(now - time.dataset.age);
    if (time.textContent !== text) time.textContent = text;
  }
}

// Makes the children of `shown` equal to those of `found`. Children with an id are kept in place
// if they have not changed.
function update(shown, found) {
  if ([...found.children].some((child) => !child.id)) {
    if (!shown.isEqualNode(found)) shown.replaceChildren(...found.childNodes);
    return;
  }
  // Rows are only added and removed, never moved: their order is that of the blocks.
  const kept = new Set([...found.children].map((child) => child.id));
  for (const child of [...shown.children]) if (!kept.has(child.id)) child.remove();
  let place = shown.firstElementChild;
  for (const child of [...found.children]) {
    if (place?.id === child.id) {
      const present = place;
      place = place.nextElementSibling;
      present.removeAttribute("data-arrived");
      updateRow(present, child);
    } else {
      child.setAttribute("data-arrived", "");
      shown.insertBefore(child, place);
    }
  }
}

// Replaces the cells of a row that have changed, so that a link with the focus keeps it.
function updateRow(present, found) {
  if (present.isEqualNode(found)) return;
  const cells = [...found.children];
  if (present.children.length !== cells.length) present.replaceWith(found);
  else
    [...present.children].forEach((cell, index) => {
      if (!cell.isEqualNode(cells[index])) cell.replaceWith(cells[index]);
    });
}

async function look() {
  const headers = version ? { "If-None-Match": `"${version}"` } : {};
  const response = await fetch(address, { headers, redirect: "error" });
  if (response.status === 304) return;
  if (!response.ok) throw new Error(`status ${response.status}`);
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  const found = page.getElementById("live");
  version = found.dataset.version ?? "";
  offset = Date.now() / 1000 - found.dataset.now;
  showAges(page);
  showAges(document);
  for (const shown of document.querySelectorAll("[data-live]"))
    update(shown, page.getElementById(shown.id));
}

async function lookIfDue() {
  if (isPaused || isLooking || document.hidden) return;
  if (performance.now() - lastLook < pause) return;
  isLooking = true;
  try {
    await look();
    live.removeAttribute("data-stale");
  } catch {
    live.setAttribute("data-stale", ""); // logged out, or the service is unavailable
  }
  isLooking = false;
  lastLook = performance.now();
}

const button = document.createElement("button");
button.type = "button";
button.textContent = "Pause updates";
button.addEventListener("click", () => {
  isPaused = !isPaused;
  button.textContent = isPaused ? "Resume updates" : "Pause updates";
  if (isPaused) return;
  lastLook = -Infinity; // at once
  lookIfDue();
});
document.getElementById("updates").append(button);

document.addEventListener("visibilitychange", lookIfDue);
setInterval(() => {
  showAges(document);
  lookIfDue();
}, 250);
showAges(document);
