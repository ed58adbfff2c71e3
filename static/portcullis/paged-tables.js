// Shows long tables on phones in pages. Without this script they scroll in their frame.
"use strict";

const phone = matchMedia("(max-width: 40rem)");

for (const frame of document.querySelectorAll("[data-paged]")) {
  const size = Number(frame.dataset.paged);
  const rows = [...frame.querySelectorAll("tbody tr")];
  if (rows.length <= size) continue;
  const pages = Math.ceil(rows.length / size);
  // Rows in the order of time begin with their last page, the newest rows.
  const isByTime = "byTime" in frame.dataset;
  let current = isByTime ? pages - 1 : 0;

  const nav = document.createElement("nav");
  nav.className = "neighbours pager";
  nav.setAttribute("aria-label", `Pages: ${frame.getAttribute("aria-label")}`);
  const place = document.createElement("span");
  place.setAttribute("role", "status");
  const button = (text, step) => {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = text;
    made.addEventListener("click", () => {
      current += step;
      show();
    });
    return made;
  };
  const earlier = button(isByTime ? "← Earlier" : "← Previous", -1);
  const later = button(isByTime ? "Later →" : "Next →", 1);
  nav.append(earlier, place, later);
  frame.after(nav);

  const show = () => {
    const first = phone.matches ? current * size : 0;
    const end = phone.matches ? Math.min(first + size, rows.length) : rows.length;
    for (const [index, row] of rows.entries()) row.hidden = index < first || index >= end;
    nav.hidden = !phone.matches;
    earlier.disabled = current === 0;
    later.disabled = current === pages - 1;
    place.textContent = `${first + 1}–${end} of ${rows.length}`;
  };

  // A link to a row shows its page.
  const showTarget = () => {
    const index = rows.findIndex((row) => row.matches(":target"));
    if (index < 0 || !phone.matches) return;
    current = Math.floor(index / size);
    show();
    rows[index].scrollIntoView();
  };

  phone.addEventListener("change", show);
  addEventListener("hashchange", showTarget);
  addEventListener("load", showTarget);
  show();
}
